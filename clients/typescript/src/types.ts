/**
 * Requests and responses as they are on the wire. Responses of newer gateways may have further fields. A test compares
 * these types with the schemas behind `/openapi.json`.
 */

export type * from './admin-types.ts';
export type * from './capability-types.ts';

import type { Verb } from './capability-types.ts';

/** Custom keys begin with `x-`; the gateway stores and returns them. */
export interface Extensions {
  [key: `x-${string}`]: unknown;
}

export interface Source {
  /** Application that created the memory. */
  app?: string | null;
  type?: 'extracted' | 'explicit' | 'imported' | null;
  /** Opaque reference, such as a session id. */
  ref?: string | null;
}

/** Who changed a memory last; set by the gateway. */
export interface Origin {
  /** Name of the API key, or subject of the token; absent: anonymous. */
  key?: string;
  /** `unknown`: the memory is older than origins, or another application wrote it. */
  via: Way | 'unknown';
  /** The version that a restore or a rollback has brought back. */
  version?: number;
  /** Time of an import. */
  at?: string;
  /** The import replaced a memory, or may have. */
  replaced?: boolean;
  /** What the file of an import states. */
  from?: { key?: string; via: Way; at?: string };
}

type Way = 'http' | 'mcp' | 'mem0' | 'import' | 'restore' | 'rollback';

/** What memories of untrusted keys count, and who wrote what is asked for. */
interface WrittenQuery {
  /** Only memories whose last change is by this key (`key:NAME`) or came this way (`via:mcp`, `via:unknown`; `features.origins`). */
  origin?: string;
  /** What untrusted keys wrote: false: it is left out; true: it counts like other memories; absent: it supersedes nothing. */
  untrusted?: boolean;
}

export interface Memory extends Extensions {
  id: string;
  content: string;
  user_id: string;
  /** ISO 8601, UTC, like all times. */
  created_at: string;
  updated_at?: string | null;
  /** Slash-delimited, such as `coding/preferences`. */
  scope?: string | null;
  tags?: string[] | null;
  source?: Source | null;
  /** 0 to 1. */
  confidence?: number | null;
  valid_from?: string | null;
  /** Null: no expiry. */
  valid_to?: string | null;
  /** Ids of the memories that this one replaces. */
  supersedes?: string[] | null;
  embedding_model?: string | null;
  /** Null: the provider does not track ingestion. */
  status?: 'queued' | 'indexing' | 'done' | 'failed' | null;
  'x-omp-origin'?: Origin;
  /** A caller with an untrusted key wrote the text. */
  'x-omp-untrusted'?: true;
}

/** A new memory, as `add` answers it. */
export interface AddedMemory extends Memory {
  /** With `similar`: other memories that say nearly the same, best first; absent: not known. */
  'x-omp-similar'?: { id: string; content: string; score: number }[];
}

export interface NewMemory extends Extensions {
  content: string;
  user_id: string;
  scope?: string | null;
  tags?: string[] | null;
  source?: Source | null;
  /** 0 to 1. */
  confidence?: number | null;
  /** ISO 8601. */
  valid_from?: string | null;
  /** ISO 8601. */
  valid_to?: string | null;
  supersedes?: string[] | null;
}

/** Only the given fields change. Null removes an expiry or an `x-` key. */
export interface MemoryPatch extends Extensions {
  content?: string;
  scope?: string;
  /** Replaces the whole list. */
  tags?: string[];
  confidence?: number;
  valid_to?: string | null;
  /** Replaces the whole list. */
  supersedes?: string[];
}

/** What was created in this time. */
interface TimesQuery {
  /** ISO 8601, inclusive, on `created_at`. */
  since?: string;
  until?: string;
}

export interface ListQuery extends WrittenQuery, TimesQuery {
  user_id: string;
  /** Glob over the scope: `*` matches any run of characters, `?` one character. */
  scope?: string;
  tag?: string;
  /** Leaves out what is not valid now, or superseded by another memory of the page (`features.current`). */
  current?: boolean;
  /** Memories per page, 1 to 500; default 50. */
  limit?: number;
  /** `next_cursor` of a page, to start there. */
  cursor?: string;
}

export interface VersionsQuery {
  /** Versions per page, 1 to 100; default 50. */
  limit?: number;
  /** `next_cursor` of a page, to start there. */
  cursor?: string;
}

/** A memory as it was. */
export interface MemoryVersion {
  /** Counts up from 1 with each change. */
  version: number;
  memory: Memory;
  /** Fields that differ from the version before it; null: that one is not kept, or not readable. */
  changed: string[] | null;
  /** Whether the memory is this version now. */
  current: boolean;
}

/** Stores that an answer lacks, of a gateway with several (`x-stores` of `/capabilities`). */
export interface LeftOut {
  /** They are optional, and do not answer. */
  'x-partial'?: string[];
  /** They do not support what was asked for. */
  'x-without'?: string[];
}

export interface Page<Item> {
  items: Item[];
  /** Null: this is the last page. */
  next_cursor?: string | null;
}

/** `since` and `until` need `features.temporal_search`. */
export interface SearchQuery extends WrittenQuery, TimesQuery {
  q: string;
  /** Several users are searched at once, where the gateway supports it (`features.multi_user`). */
  user_id: string | string[];
  /** Prefix of the scope. */
  scope?: string;
  /** Only memories with this tag (`features.tag_search`). */
  tag?: string;
  /** 1 to 100; default 10. */
  limit?: number;
  /** 0 to 1; omits results with a lower score. */
  min_score?: number;
  /** Leaves out what is not valid now, or superseded by another of the 100 best hits (`features.current`). */
  current?: boolean;
  /** One result for each text: the newest memory with it among the 100 best hits (`features.distinct`). */
  distinct?: boolean;
  /** Whether each result tells the parts of its score (`features.explain`). */
  explain?: boolean;
}

export interface SearchResult {
  memory: Memory;
  /** 0 to 1. */
  score: number;
  /** Ids of the hits that supersede this memory. */
  'x-superseded-by'?: string[];
  /** With `distinct`: ids of other memories with the same text. */
  'x-copies'?: string[];
  /** Present with `explain` only. */
  explanation?: Explanation;
}

/** The parts of a score. Null: the backend does not compute the part. */
export interface Explanation {
  cosine: number | null;
  /** Share of the query's terms in the memory, weighted by rarity, 0 to 1. */
  coverage: number | null;
  /** Words of the query that the memory contains. */
  terms: string[] | null;
  weights: { vector: number; keyword: number };
  /** The mounted store of the memory; absent: the root store. */
  store?: string;
  /** Factor of the scores of this store. */
  store_weight?: number;
}

export interface SearchResults extends LeftOut {
  /** Highest score first. */
  results: SearchResult[];
  /** Results within `limit` are omitted, since the response would exceed 4 MiB. */
  'x-truncated'?: true;
}

export interface ContextQuery {
  query: string;
  user_id: string | string[];
  /** Prefix of the scope. */
  scope?: string | null;
  /** Maximum tokens of `text`; default 500. */
  token_budget?: number | null;
  /** 0 to 1; omits memories with a lower score. */
  min_score?: number | null;
  /** As in `SearchQuery`. */
  since?: string | null;
  until?: string | null;
  /** The time for which the context is made: what is valid then, how old it is, and which day "yesterday" is; default: now. */
  now?: string | null;
  /** 0.1 to 36500; prefers what was said lately: scores times 0.75 after these days, and never less than 0.5. */
  half_life_days?: number | null;
  /** As in `ListQuery`. */
  origin?: string | null;
  /** Whether memories of untrusted keys are included, marked with `[untrusted]`; default false. */
  untrusted?: boolean | null;
  /** Whether each citation has an `explanation`; default false. */
  explain?: boolean | null;
}

/** Why a memory has its place in a context. Null: it is in no conversation; `search`: a neighbour brought it in. */
export interface PlaceExplanation {
  search: number | null;
  neighbour: number | null;
  conversation: number | null;
  weights: { neighbour: number; conversation: number };
  /** Whether the store finds neighbours. */
  neighbours: boolean;
}

export interface ContextBlock extends LeftOut {
  /** A text for a prompt; empty if no memory matches. */
  text: string;
  /** The memory of each line, in order. */
  /** `x-copies`: ids of other memories with the same text. */
  citations: { memory_id: string; score: number; 'x-copies'?: string[]; explanation?: PlaceExplanation }[];
  token_count: number;
}

export interface AuditQuery {
  user_id: string;
  /** Only entries of this caller: the name of a key or the subject of a token. */
  app?: string;
  since?: string;
  until?: string;
  /** Entries per page, 1 to 1000; default 100. */
  limit?: number;
  cursor?: string;
}

/** What an entry of the audit log may record. */
export type Action =
  | Verb
  | 'users'
  | 'stats'
  | 'versions'
  | 'restore'
  | 'purge'
  | 'erase'
  | 'rollback'
  | 'person_file'
  | 'retention'
  | 'export'
  | 'import'
  | 'changes'
  | 'list_keys'
  | 'create_key'
  | 'revoke_key'
  | 'embedding_usage'
  | 'list_webhooks'
  | `${'create' | 'delete' | 'test' | 'resume' | 'rotate'}_webhook`
  | 'freeze'
  | 'unfreeze';

export interface AuditEntry {
  timestamp: string;
  /** Name of the key or subject of the token; null: anonymous. */
  app: string | null;
  action: Action;
  memory_id: string | null;
  scope: string | null;
  request_id: string;
  /** `ok` or the code of the error. */
  outcome: string;
}

export interface AuditPage {
  /** Newest first. */
  entries: AuditEntry[];
  next_cursor?: string | null;
}

export interface ChangesQuery {
  /** `cursor` of a change or `next_cursor`; `now`: from now on. Default: from the beginning of the log. */
  after?: string | undefined;
  user_id?: string | undefined;
  /** Glob. */
  scope?: string | undefined;
  limit?: number | undefined;
  /** `memory`: each change with the memory as it is now. */
  include?: 'memory' | undefined;
  /** Seconds to wait for a change if there is none, at most 60. */
  wait?: number | undefined;
}

/** A change of a memory. Read the memory to know what it is now: it may have changed again. */
export interface Change {
  /** The position after this change. */
  cursor: string;
  /** Null: all memories of the user. */
  id: string | null;
  action: Action;
  user_id: string;
  /** Of the memory; of one that was moved away, the scope it had. */
  scope: string | null;
  at: string;
  /** Name of the key or subject of the token; null: anonymous. */
  caller: string | null;
  /** Absent: not asked for, or the memory is not there or cannot be read. */
  memory?: Memory;
}

export interface ChangePage {
  /** Oldest first. */
  changes: Change[];
  next_cursor: string;
  /** Whether there may be more changes already. */
  more: boolean;
}

export interface ExportQuery {
  /** Only these memories, at most 100. */
  id?: string[];
  /** Only memories of this user. */
  user_id?: string;
  /** Only memories changed at or after this time. */
  since?: string;
  /** Whether each memory has its vector. */
  vectors?: boolean;
  /** Whether each memory has its versions (`features.versions`). */
  versions?: boolean;
  limit?: number;
  cursor?: string;
}

export interface ExportedMemory extends Memory {
  /** Base64 of little-endian float32. */
  vector?: string;
  /** The number of this version. */
  version?: number;
  /** The versions before it, newest first. */
  versions?: Pick<MemoryVersion, 'version' | 'memory'>[];
  /** How many older ones `versions` lacks; absent: none. */
  versions_left_out?: number;
}

export interface ExportPage extends LeftOut {
  memories: ExportedMemory[];
  next_cursor?: string | null;
}

/** A memory that keeps its id and times. */
export interface NewExportedMemory extends NewMemory {
  id: string;
  created_at: string;
  updated_at?: string | null;
  embedding_model?: string | null;
  vector?: string | null;
  version?: number | null;
  versions?: { version: number; memory: object }[] | null;
}

/** `unchanged`: it is stored already, as it is; `exists`: its id is, with other fields, or of another user. */
export type ImportResult =
  | { outcome: 'stored' | 'unchanged' | 'exists'; error?: never }
  | { error: BatchError; outcome?: never };

/** One memory of a batch: added, or the reason why not. */
export type BatchResult = { memory: Memory; error?: never } | { error: BatchError; memory?: never };

export interface BatchError {
  code: string;
  message: string;
  type: string;
  provider?: string;
}

export interface UsersQuery {
  /** Start of the user's id. */
  prefix?: string;
  limit?: number;
  cursor?: string;
}

export interface User {
  user_id: string;
  /** Memories that the key may read. */
  count: number;
  last_write: string;
}

export interface Stats extends LeftOut {
  user_id: string;
  count: number;
  /** Null: the user has no memories. */
  oldest: string | null;
  newest: string | null;
  last_write: string | null;
  /** The scopes and tags with the largest counts. */
  scopes: { scope: string | null; count: number }[];
  tags: { tag: string; count: number }[];
  /** Counts by `created_at` in UTC, oldest first; `from` is the first day. */
  created: { per: 'day' | 'month'; counts: { from: string; count: number }[] };
  /** Absent: users have no limits, or the caller may not read all scopes. */
  limits?: Record<'memories' | 'bytes' | 'adds_per_day', { used: number; limit: number | null }>;
}

/** How much of a user, by kind. Absent: the store has no such kind. */
export interface Holdings {
  memories?: number;
  vectors?: number;
  versions?: number;
  queued?: number;
  usage_counts?: number;
  idempotency_keys?: number;
  audit_entries?: number;
  large_user_notes?: number;
}

/** What an erase removed, what was there afterwards, and what is kept. */
export interface ErasureReceipt {
  user_id: string;
  at: string;
  /** Whether every store was read back and has nothing but what is kept. If not, repeat the erase. */
  complete: boolean;
  stores: {
    name: string;
    removed: Holdings;
    left: Holdings;
    read_back: 'counted' | 'listed' | 'impossible' | 'failed';
    /** Another application fills it, and may hold more of the user. */
    mapped?: true;
  }[];
  kept: { what: string; count?: number; why: string }[];
}

export interface Erased extends LeftOut {
  /** The number of memories. */
  deleted: number;
  /** Absent: the gateway is older than receipts. */
  receipt?: ErasureReceipt;
}

export interface RollbackQuery {
  /** Undoes what was written at or after this time. */
  since: string;
  /** And at or before this time; default: until now. */
  until?: string | undefined;
  /** By this caller: the name of a key or the subject of a token; empty: callers without one. Default: by anybody. */
  key?: string | undefined;
  /** Only says what would be done. */
  dry_run?: boolean;
  /** Memories that a request looks at, 1 to 500; default 100. */
  limit?: number;
  cursor?: string;
}

export interface RollbackItem {
  /** Null: all memories of the user, which were erased. */
  id: string | null;
  /** `deleted`: it was deleted in that time, which cannot be undone. */
  action: 'delete' | 'restore' | 'keep' | 'deleted';
  /** Why it is kept. */
  reason?: 'changed_since' | 'no_version' | 'rolled_back' | 'unchanged' | 'rejected';
  /** The version that it gets back. */
  version?: number;
  /** As it was found; absent: the key may not read it, or it was deleted before. */
  memory?: Memory;
}

export interface RollbackPage extends Page<RollbackItem>, LeftOut {
  /** False: there is no audit log, so nothing names what was deleted. */
  deletes_known: boolean;
}

export interface RetentionQuery {
  /** Only says what would be deleted. */
  dry_run?: boolean;
  cursor?: string | undefined;
}

export interface RetentionRule {
  scope?: string;
  tag?: string;
  /** Null: what matches is kept. */
  days: number | null;
  /** From which time the days count; default: `created_at`. */
  by?: 'created_at' | 'updated_at';
}

/** What was deleted, or would be. The pages may have several of the same user, scope and rule: add them up. */
export interface RetentionItem {
  user_id: string;
  scope: string | null;
  /** The number of the rule, from 1. */
  rule: number;
  memories: number;
}

export interface RetentionPage extends Page<RetentionItem>, LeftOut {
  /** As configured: the first that a memory matches decides. */
  rules: RetentionRule[];
  /** Memories that the request has looked at. */
  looked: number;
  /** Memories that could not be deleted: they stay until the rules are applied again. */
  failed: number;
  /** What rules without days have kept. */
  kept: { rule: number; memories: number }[];
}

/** A line of the file of a person. A memory lacks the fields that are not set. */
export type PersonLine =
  | {
      type: 'person';
      user_id: string;
      made_at: string;
      format: number;
      /** `holds`: where a store is mounted; absent: the root store. */
      stores: { name: string; holds?: string }[];
      note: string;
    }
  | (Omit<Memory, 'user_id'> & { type: 'memory' | 'version'; version?: number; store: string })
  | (AuditEntry & { type: 'audit' })
  | { type: 'missing' | 'not_kept'; what: string; why: string }
  | { type: 'end'; memories: number; versions: number; audit_entries: number; complete: boolean };
