/* Made of the OpenAPI document by `npm run docs`. Change the schemas of the verbs instead. */

/** Custom keys begin with `x-`; the gateway stores and returns them. */
export interface Extensions {
  [key: `x-${string}`]: unknown;
}

/** Stores that an answer lacks, of a gateway with several (`x-stores` of `/capabilities`). */
export interface LeftOut {
  /** They are optional, and do not answer. */
  'x-partial'?: string[];
  /** They do not support what was asked for. */
  'x-without'?: string[];
}

export interface NewMemory extends Extensions {
  /**
   * Text of the memory, stored byte for byte: not blank, without NUL, at most `features.max_content_length`
   * characters.
   */
  content: string;
  /** User the memory belongs to. */
  user_id: string;
  /** Slash-delimited hierarchical namespace: 1 to 32 non-empty segments without `*`, `?` or control characters. */
  scope?: string | null;
  /** Free-form labels. */
  tags?: string[] | null;
  source?: Source | null;
  /** 0 to 1. */
  confidence?: number | null;
  /** ISO 8601 date or date-time; UTC when it has no offset. */
  valid_from?: string | null;
  /** ISO 8601 date or date-time; UTC when it has no offset. */
  valid_to?: string | null;
  /** Ids of the memories that this one replaces. */
  supersedes?: string[] | null;
}

/** Only the given fields are changed. */
export interface MemoryPatch extends Extensions {
  /**
   * Text of the memory, stored byte for byte: not blank, without NUL, at most `features.max_content_length`
   * characters.
   */
  content?: string;
  /** Slash-delimited hierarchical namespace: 1 to 32 non-empty segments without `*`, `?` or control characters. */
  scope?: string;
  /** Free-form labels. */
  tags?: string[];
  /** 0 to 1. */
  confidence?: number;
  /** New expiry; null removes it. */
  valid_to?: string | null;
  /** Ids of the memories that this one replaces. */
  supersedes?: string[];
}

export interface ContextQuery {
  /** Search query. */
  query: string;
  /** The user, or up to 16 users whose memories are searched together. */
  user_id: string | string[];
  /** String prefix of the scope; one trailing `*` is accepted and ignored. */
  scope?: string | null | undefined;
  /** Maximum tokens of `text` (o200k_base). Default: 500. */
  token_budget?: number | null | undefined;
  /** Omits memories with a lower score; default 0.1 with vector search, else 0. */
  min_score?: number | null | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  since?: string | null | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  until?: string | null | undefined;
  /**
   * The time for which the context is made: what is valid then, how old it is, and which day "yesterday" is;
   * default: now.
   */
  now?: string | null | undefined;
  /**
   * Prefers what was said lately (`valid_from`, else `created_at`): scores times 0.75 after these days, and
   * never less than 0.5. Default: off.
   */
  half_life_days?: number | null | undefined;
  /**
   * Only memories whose last change is by this key (`key:NAME`) or came this way (`via:WAY`; `via:unknown`:
   * without an origin). Needs `features.origins`.
   */
  origin?: string | null | undefined;
  /** Whether the context may have memories of untrusted keys, each with `[untrusted]` before its text. */
  untrusted?: boolean | null | undefined;
  /** Whether each citation has an `explanation` of its place. */
  explain?: boolean | null | undefined;
}

export interface RollbackQuery {
  /** Undoes what was written at or after this time, by the clock of the gateway. */
  since: string;
  /** At or before this time; default: until now. */
  until?: string | undefined;
  /**
   * By this caller: the name of a key or the subject of a token; empty: callers without one. Default: by
   * anybody.
   */
  key?: string | undefined;
  /** Only says what would be done. */
  dry_run?: boolean | undefined;
  /** Maximum memories that a request looks at. Default: 100. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface RetentionQuery {
  /** Only says what would be deleted. */
  dry_run?: boolean | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface NewExportedMemory extends NewMemory {
  id: string;
  /** ISO 8601 date or date-time; UTC when it has no offset. */
  created_at: string;
  /** ISO 8601 date or date-time; UTC when it has no offset. */
  updated_at?: string | null;
  embedding_model?: string | null;
  /** Base64 of little-endian float32. Taken over if `embedding_model` is the one of the gateway. */
  vector?: string | null;
  /** The number of this version; unset: above all of `versions`. */
  version?: number | null;
  /** Versions before it, with the same `id` and `user_id`. Taken over if the store has versions. */
  versions?:
    | {
        version: number;
        memory: object;
      }[]
    | null;
}

export interface NewKey {
  /** Unique, also among revoked keys. */
  name: string;
  /** `<action>:<scope glob>`, or `admin:*`. */
  grants: string[];
  /** Users whose memories it may access; null: all. */
  users?: string[] | null;
  /** Date, from 00:00 UTC on, or date-time with offset; null: never. */
  expires_at?: string | null;
  /** Whether what it writes is marked with `x-omp-untrusted`. Such a key has no `admin:*`. */
  untrusted?: boolean | null;
}

export interface NewWebhook {
  /** An `https://` address without credentials. */
  url: string;
  /** Only changes of these users; null: of all. */
  users?: string[] | null;
  /** Only changes in scopes that match this glob; null: in all. */
  scope?: string | null;
  /** Only changes by these actions; null: by all. */
  actions?: ChangeAction[] | null;
}

export interface AddedMemory extends Memory {
  /** Other memories that say nearly the same, best first, at most 3; absent: not known, or not asked for. */
  'x-omp-similar'?: {
    id: string;
    content: string;
    /** Order of the results; higher means more relevant. */
    score: number;
  }[];
}

export interface MemoryPage extends LeftOut {
  /** Newest first: by `created_at`, then `id`, both descending. */
  items: Memory[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface Memory extends Extensions {
  /** Assigned by the provider; opaque. */
  id: string;
  /** The stored text. */
  content: string;
  /** User the memory belongs to. */
  user_id: string;
  /** Creation time, UTC. */
  created_at: string;
  /** Time of the last change, UTC. */
  updated_at?: string | null;
  /** Slash-delimited hierarchical namespace. */
  scope?: string | null;
  /** Free-form labels. */
  tags?: string[] | null;
  /** Origin of the memory. */
  source?: Source | null;
  /** Null if omitted at creation. */
  confidence?: number | null;
  /** Start of validity. */
  valid_from?: string | null;
  /** End of validity; null: none. */
  valid_to?: string | null;
  /** Ids of the memories that this one replaces. */
  supersedes?: string[] | null;
  /** Model of the vector, if any. */
  embedding_model?: string | null;
  /** Ingestion state; absent or null: not tracked. */
  status?: 'queued' | 'indexing' | 'done' | 'failed' | null;
  /** The last change; its time is `updated_at`. Set by the gateway, ignored in input. */
  'x-omp-origin'?: Origin;
  /** A caller with an untrusted key wrote the text. Set by the gateway, ignored in input. */
  'x-omp-untrusted'?: true;
}

export interface SearchResults extends LeftOut {
  /** Highest `score` first. */
  results: SearchResult[];
  /** Results within `limit` are omitted, because the response would exceed 4 MiB. */
  'x-truncated'?: true;
}

export interface SearchResult {
  memory: Memory;
  /** Order of the results; higher means more relevant. */
  score: number;
  /** Ids of the hits that supersede this memory; absent: none does, or `current` was asked for. */
  'x-superseded-by'?: string[];
  /** Ids of other memories of the user with the same text; absent: none. */
  'x-copies'?: string[];
  /**
   * With `explain`: `score` is `weights.vector · cosine + weights.keyword · coverage`, of a mounted store times
   * `store_weight` and at most 1.
   */
  explanation?: Explanation;
}

export interface ContextBlock extends LeftOut {
  /**
   * Numbered lines in a fence, best first, with day and source; parts of a conversation stand together, in its
   * order. Empty if no memory matches.
   */
  text: string;
  /** The memory of each line, in order. `score`: by which it ranks. */
  citations: Citation[];
  /** Tokens of `text`, at most the budget. */
  token_count: number;
}

export interface AuditPage {
  /** Newest first. */
  entries: AuditEntry[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface VersionPage extends LeftOut {
  items: MemoryVersion[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface MemoryVersion {
  /** Counts up from 1 with each change. */
  version: number;
  /** As it was. `updated_at`: when this version was written. */
  memory: Memory;
  /** Fields that differ from the version before it; null: that one is not kept, or not readable. */
  changed: string[] | null;
  /** Whether the memory is this version now. */
  current: boolean;
}

export interface ChangePage {
  changes: Change[];
  /** `after` of the next request. */
  next_cursor: string;
  /** Whether there may be more changes already. */
  more: boolean;
}

export interface UserPage extends LeftOut {
  items: User[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface Erased extends LeftOut {
  /** Number of memories. */
  deleted: number;
  receipt?: ErasureReceipt;
}

export interface ErasureReceipt {
  user_id: string;
  /** When the stores were read back. */
  at: string;
  /** Whether every store was read back and is empty. */
  complete: boolean;
  stores: {
    name: string;
    /** By kind. Absent: the store has no such kind. */
    removed: Holdings;
    /** What was there afterwards. */
    left: Holdings;
    /**
     * counted: by the store itself; listed: the list of memories was read; impossible: the store can do neither;
     * failed: an optional store failed.
     */
    read_back: 'counted' | 'listed' | 'impossible' | 'failed';
    /** Another application fills it, and may hold more of the user. */
    mapped?: true;
  }[];
  kept: {
    what: string;
    count?: number;
    why: string;
  }[];
}

export interface Stats extends LeftOut {
  user_id: string;
  /** Number of memories. */
  count: number;
  /** `created_at` of the oldest memory; null: no memories. */
  oldest: string | null;
  /** `created_at` of the newest memory; null: no memories. */
  newest: string | null;
  /** Time of the last change of a memory that is still there. */
  last_write: string | null;
  /** The 100 largest, largest first; `scope` is null for memories without one. */
  scopes: {
    scope: string | null;
    /** Number of memories. */
    count: number;
  }[];
  /** The 100 largest, largest first. */
  tags: {
    tag: string;
    /** Number of memories. */
    count: number;
  }[];
  /** By `created_at`, in UTC, oldest first: by day if all are within 92 days, else the newest 120 months. */
  created: {
    per: 'day' | 'month';
    counts: {
      from: string;
      /** Number of memories. */
      count: number;
    }[];
  };
  /**
   * What the user has of what it may have; `limit` is null if there is none. Only if the gateway limits users,
   * for callers who may read all scopes.
   */
  limits?: {
    memories: {
      used: number;
      limit: number | null;
    };
    bytes: {
      used: number;
      limit: number | null;
    };
    adds_per_day: {
      used: number;
      limit: number | null;
    };
  };
}

export interface RollbackPage extends LeftOut {
  items: RollbackItem[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
  /** False: the gateway has no audit log, so no item says what was deleted then. */
  deletes_known: boolean;
}

export interface RetentionPage extends LeftOut {
  /** As configured: the first that a memory matches decides. Empty: nothing is deleted. */
  rules: RetentionRule[];
  /** Memories that this request has looked at. */
  looked: number;
  /** What was deleted, by user, scope and rule. */
  items: RetentionItem[];
  /** Memories that could not be deleted: they stay until the rules are applied again. */
  failed: number;
  /** What rules without days have kept. */
  kept: {
    /** The number of the rule, from 1. */
    rule: number;
    /** Number of memories. */
    memories: number;
  }[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface ExportPage extends LeftOut {
  memories: ExportedMemory[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface ExportedMemory extends Memory {
  /** With `vectors`: base64 of little-endian float32. */
  vector?: string;
  /** With `versions`: the number of this version. */
  version?: number;
  /** With `versions`: those before it, newest first; of more than 4194304 bytes, the newest. */
  versions?: {
    version: number;
    memory: Memory;
  }[];
  /** How many older ones `versions` lacks; absent: none. */
  versions_left_out?: number;
}

export interface KeyPage {
  /** Newest first. */
  items: Key[];
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface Key {
  /** The public part of the key. */
  id: string;
  /** Unique, also among revoked keys. */
  name: string;
  /** `<action>:<scope glob>`, or `admin:*`. */
  grants: string[];
  /** Users whose memories it may access; null: all. */
  users: string[] | null;
  /** Whether what it writes is marked with `x-omp-untrusted`. */
  untrusted?: boolean;
  /** Creation time, UTC. */
  created_at: string;
  /** The key is valid before this time; null: without end. */
  expires_at: string | null;
  /** Time of revocation; null: not revoked. */
  revoked_at: string | null;
  /** Time of the last use, to about a minute; null: never. */
  last_used_at: string | null;
}

export interface CreatedKey extends Key {
  /** The key itself. No other answer has it. */
  key: string;
}

export interface EmbeddingUsage {
  /** First day. */
  since: string;
  /** Last day. */
  until: string;
  /** The store keeps no usage: that from before is not known; null: it does. */
  counted_since: string | null;
  items: EmbeddingUsageRow[];
  /** The sums of these items. */
  totals: EmbeddingUsageTotals;
  /** `cursor` of the next page; null: last page. */
  next_cursor?: string | null;
}

export interface Webhook {
  id: string;
  /** Where changes are sent. */
  url: string;
  /** Only changes of these users; null: of all. */
  users: string[] | null;
  /** Only changes in scopes that match this glob; null: in all. */
  scope: string | null;
  /** Only changes by these actions; null: by all. */
  actions: string[] | null;
  /** Creation time, UTC. */
  created_at: string;
  /**
   * `gone`: the receiver answered 410. `given_up`: a day without success. `lost`: the audit log no longer holds
   * the next change.
   */
  state: 'active' | 'gone' | 'given_up' | 'lost';
  /** Every change up to here was delivered, or is outside the filter. */
  cursor: string;
  /** Since when the deliveries fail; null: they do not. */
  failing_since: string | null;
  /** Changes that were waiting when the deliveries stopped. */
  undelivered: number;
  /** Before this time the secret before the last rotation signs too; null: no rotation. */
  previous_until: string | null;
  /** The last attempts, newest first. */
  deliveries: Delivery[];
}

export interface Delivery {
  /** `webhook-id`: the same in every attempt for this change. */
  id: string;
  /** `memory.` and the action of the change, or `webhook.test`. */
  type: string;
  /** Time of the attempt, UTC. */
  at: string;
  /** `delivered`: the receiver answered with a status from 200 to 299. */
  outcome: 'delivered' | 'rejected' | 'gone' | 'timeout' | 'unreachable' | 'address_denied' | 'secret_unreadable';
  /** HTTP status; null: there was none. */
  status: number | null;
  /** Duration of the attempt. */
  milliseconds: number;
}

export interface WebhookWithSecret extends Webhook {
  /** The key of the signatures. No other answer has it. */
  secret: string;
}

export interface FreezeState extends Freeze {
  /** For how long an open transaction has held back the feed of changes; 0: none does. */
  feed_held_seconds: number;
}

export interface Freeze {
  /** Since when the store takes no changes; null: it takes them. */
  since: string | null;
  /** The name of the key that froze it, or another name of the caller. */
  by: string | null;
}

export interface Capabilities {
  /** Version of the protocol. */
  omp_version: string;
  /** Whether the store takes no changes at the moment, because it is being moved; null: it takes them. */
  frozen?: {
    /** Since when. */
    since: string;
  } | null;
  /** Name of the backend. */
  provider: string;
  /** Supported verbs. */
  verbs: Verb[];
  /** What makes the vectors; null: there are none. */
  embedding?: {
    model: string;
    dimensions: number;
  } | null;
  features: Features;
  limits?: Limits;
  /** Stores mounted at scopes; all else is about the root store. Absent: there are none. */
  'x-stores'?: MountedStore[];
}

export interface MountedStore {
  /** The ids of its memories begin with `~name~`. */
  name: string;
  /** Its memories have this scope, or one below. */
  mount: string;
  /** Name of the backend. */
  provider: string;
  /** Supported verbs. */
  verbs: Verb[];
  /** What makes the vectors; null: there are none. */
  embedding?: {
    model: string;
    dimensions: number;
  } | null;
  features: Features;
  limits?: Limits;
}

export interface Health {
  /** The gateway runs and its backend answers. */
  status: 'ok';
  /** Name of the backend. */
  provider: string;
}

export type Verb = 'add' | 'search' | 'get' | 'update' | 'delete' | 'list' | 'context' | 'audit';

export type Action =
  | 'add'
  | 'search'
  | 'get'
  | 'update'
  | 'delete'
  | 'list'
  | 'context'
  | 'audit'
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
  | 'create_webhook'
  | 'delete_webhook'
  | 'test_webhook'
  | 'resume_webhook'
  | 'rotate_webhook'
  | 'freeze'
  | 'unfreeze';

export interface Source {
  /** Application that created the memory. */
  app?: string | null;
  /** How the memory was created. */
  type?: 'extracted' | 'explicit' | 'imported' | null;
  /** Opaque reference, such as a session id. */
  ref?: string | null;
}

export interface Origin {
  /** Name of the API key, or subject of the token; absent: anonymous. */
  key?: string;
  /** `unknown`: the memory is older than origins, or another application wrote it. */
  via: 'http' | 'mcp' | 'mem0' | 'import' | 'restore' | 'rollback' | 'unknown';
  /** The version that a restore or a rollback has brought back. */
  version?: number;
  /** Time of an import, whose `updated_at` comes from a file. */
  at?: string;
  /** An import that replaced a memory, or may have. */
  replaced?: boolean;
  /** The first origin that the file of an import states. */
  from?: {
    key?: string;
    via: 'http' | 'mcp' | 'mem0' | 'import' | 'restore' | 'rollback';
    /** As stated. */
    at?: string;
  };
}

export interface Explanation {
  /** Similarity of the vectors of query and memory; null: has no weight. */
  cosine: number | null;
  /** Share of the query's rarity that the memory contains; null: has no weight. */
  coverage: number | null;
  /** Words of the query that the memory contains; null: have no weight. */
  terms: string[] | null;
  /** Of `cosine` and of `coverage`. */
  weights: {
    vector: number;
    keyword: number;
  };
  /** Store of the memory; absent: the root store. */
  store?: string;
  /** Factor of the scores of this store. */
  store_weight?: number;
}

export interface PlaceExplanation {
  /** Score of the search, times the factors of time; null: no search found it, a neighbour did. */
  search: number | null;
  /** Better score of the memories before and after it; null: it is in no conversation. */
  neighbour: number | null;
  /** Mean of the two best scores of its conversation; null: it is in none. */
  conversation: number | null;
  weights: {
    neighbour: number;
    conversation: number;
  };
  /**
   * Whether the store of the memory finds neighbours; if not, `score` is that of the search, times the factors
   * of time.
   */
  neighbours: boolean;
}

export interface Citation {
  memory_id: string;
  /** Order of the results; higher means more relevant. */
  score: number;
  /** Ids of other memories of the user with the same text; absent: none. */
  'x-copies'?: string[];
  /**
   * With `explain`: memories of conversations stand in the order of `search` + `weights.neighbour` ·
   * `neighbour` + `weights.conversation` · `conversation`.
   */
  explanation?: PlaceExplanation;
}

export interface AuditEntry {
  /** Time of the request, UTC. */
  timestamp: string;
  /** Name of the key or subject of the token; null: anonymous. */
  app: string | null;
  /** The verb, or another call of this gateway. */
  action: Action;
  /** Null: the verb has no single memory. */
  memory_id: string | null;
  /** Scope of the memory, or the requested one. */
  scope: string | null;
  /** Id of the request, as in the access log. */
  request_id: string;
  /** `ok`, or the code of the error. */
  outcome:
    | 'ok'
    | 'unauthorized'
    | 'scope_denied'
    | 'not_found'
    | 'invalid_request'
    | 'rate_limited'
    | 'unsupported_capability'
    | 'provider_error'
    | 'payload_too_large';
}

export interface Change {
  /** The position after this change. */
  cursor: string;
  /** The memory; null: all memories of the user. */
  id: string | null;
  /** add, update, delete, import or erase. */
  action: Action;
  user_id: string;
  /** Scope of the memory; of one that was moved away, the scope it had. */
  scope: string | null;
  /** Time of the change, UTC. */
  at: string;
  /** Name of the key or subject of the token; null: anonymous. */
  caller: string | null;
  /** With `include=memory`, if it exists and can be read. */
  memory?: Memory;
}

export interface User {
  user_id: string;
  /** Number of memories. */
  count: number;
  /** Time of the last change of a memory that is still there. */
  last_write: string;
}

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

export interface RollbackItem {
  /** The memory; null: all memories of the user. */
  id: string | null;
  /**
   * `delete`: it was added then. `restore`: it gets `version` back. `keep`: it stays as it is, for this
   * `reason`. `deleted`: it was deleted then, which cannot be undone.
   */
  action: 'delete' | 'restore' | 'keep' | 'deleted';
  /**
   * `changed_since`: by somebody else, last or in between. `no_version`: the version before is not known.
   * `rolled_back`: already, or this caller has rolled it back, which only a restore undoes. `unchanged`: it
   * says what it said before. `rejected`: the store does not take the version back.
   */
  reason?: 'changed_since' | 'no_version' | 'rolled_back' | 'unchanged' | 'rejected';
  /** The version that it gets back. */
  version?: number;
  /** As it was found, if the caller may read it. */
  memory?: Memory;
}

export interface RetentionRule {
  scope?: string;
  tag?: string;
  /** Null: what matches is kept. */
  days: number | null;
  /** From which time the days count; absent: `created_at`. */
  by?: 'created_at' | 'updated_at';
}

export interface RetentionItem {
  user_id: string;
  scope: string | null;
  /** The number of the rule, from 1. */
  rule: number;
  /** Number of memories. */
  memories: number;
}

export interface EmbeddingUsageTotals {
  /** Texts that the service has embedded. */
  texts: number;
  /** Tokens that the service reported; null: unknown, because it did not report all. */
  tokens: number | null;
  /** Requests that reached it, with retries and failures. */
  requests: number;
}

export interface EmbeddingUsageRow extends EmbeddingUsageTotals {
  /** Day, UTC. */
  day: string;
  /**
   * Name of the key or subject of the token; null: anonymous, or the gateway itself; `(others)`: more names
   * than a gateway counts by themselves.
   */
  app: string | null;
  /** The embedding model. */
  model: string;
}

export interface Features {
  /** Similarity search. */
  vector_search: boolean;
  /** Keyword search. */
  keyword_search: boolean;
  /** Graph queries. */
  graph_queries: boolean;
  /** Filters by time. */
  temporal: boolean;
  /** `since` and `until` of search and context. */
  temporal_search?: boolean;
  /** How scopes are implemented. */
  scopes: 'native' | 'tags' | 'none';
  /** Maximum characters of `content`; null: no limit. */
  max_content_length: number | null;
  /** An audit log is recorded. */
  supports_audit: boolean;
  /** `supersedes` is tracked. */
  supports_supersession: boolean;
  /** `POST /memories` supports `Idempotency-Key`. */
  idempotency?: boolean;
  /** `explain=true` of search explains scores. */
  explain?: boolean;
  /** List and search take `current`. */
  current?: boolean;
  /** Search takes `distinct`. */
  distinct?: boolean;
  /** `POST /memories` takes `similar`. */
  similar?: boolean;
  /** Search and context take several `user_id`. */
  multi_user?: boolean;
  /** Memories have tags, and lists filter by them. */
  tags?: boolean;
  /** `tag` of search. */
  tag_search?: boolean;
  /** Other replicas may show writes late; `X-Consistency-Token` makes them wait. */
  consistency_tokens?: boolean;
  /** Memories have an `ETag`, and changes support `If-Match`. */
  etags?: boolean;
  /** Context ranks memories with `source.ref` by their conversation too. */
  neighbours?: boolean;
  /** `origin` of list, search and context filters by who wrote a memory. */
  origins?: boolean;
  /** `POST /memories/batch` is supported. */
  batch?: boolean;
  /** `GET /memories/{id}/versions` is supported. */
  versions?: boolean;
  /** `GET /changes` is supported. */
  changes?: boolean;
  /** `GET /users` is supported. */
  users?: boolean;
  /** `DELETE /users/{id}/memories` is supported. */
  erase?: boolean;
  /** `GET /stats` is supported. */
  stats?: boolean;
  /** `POST /users/{id}/rollback` is supported. */
  rollback?: boolean;
  /** `POST /retention` is supported. */
  retention?: boolean;
  /** `GET /users/{id}/file` is supported. */
  person_file?: boolean;
  /** `GET /export` is supported. */
  export?: boolean;
  /** `POST /import` is supported. */
  import?: boolean;
  /** `GET /keys` is supported. */
  keys?: boolean;
  /** `GET /embedding-usage` is supported. */
  embedding_usage?: boolean;
  /** `GET /webhooks` is supported. */
  webhooks?: boolean;
  /** `DELETE /freeze` is supported. */
  freeze?: boolean;
}

export interface Limits {
  /** Maximum requests per minute; null: no limit. */
  rate_limit_per_minute: number | null;
  /** Maximum `limit` of a search; null: no limit. */
  max_search_results: number | null;
  /** Maximum memories of a batch. */
  max_batch_size?: number;
  /** Least score of a memory that says nearly the same; null: there is no search. */
  similar_score?: number | null;
}

export type ChangeAction = 'add' | 'update' | 'delete' | 'erase' | 'import';

export interface ListQuery {
  /** User the memory belongs to. */
  user_id: string;
  /** Glob over the scope: `*` matches any run of characters, `/` included, `?` one character. */
  scope?: string | undefined;
  /** Only memories with this tag. */
  tag?: string | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  since?: string | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  until?: string | undefined;
  /** Maximum results per page. Default: 50. */
  limit?: number | undefined;
  /** Leaves out what is not valid now, or superseded by another memory of the page. */
  current?: boolean | undefined;
  /**
   * Only memories whose last change is by this key (`key:NAME`) or came this way (`via:WAY`; `via:unknown`:
   * without an origin). Needs `features.origins`.
   */
  origin?: string | undefined;
  /**
   * What memories with `x-omp-untrusted` count: false: they are left out; true: like others; absent: they are
   * answered, but supersede nothing.
   */
  untrusted?: boolean | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface SearchQuery {
  /** Search query. */
  q: string;
  /** The user, or up to 16 users whose memories are searched together. */
  user_id: string | string[];
  /** String prefix of the scope; one trailing `*` is accepted and ignored. */
  scope?: string | undefined;
  /** Only memories with this tag, if `features.tag_search` is true; else ignored, as `X-Ignored-Fields` says. */
  tag?: string | undefined;
  /** Maximum results. Default: 10. */
  limit?: number | undefined;
  /** Leaves out what is not valid now, or superseded by another of the 100 best hits. */
  current?: boolean | undefined;
  /** One result for each text: the newest memory with it among the 100 best hits. */
  distinct?: boolean | undefined;
  /** Whether each result has an `explanation` of its score. */
  explain?: boolean | undefined;
  /** Omits results with a lower score. */
  min_score?: number | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  since?: string | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  until?: string | undefined;
  /**
   * Only memories whose last change is by this key (`key:NAME`) or came this way (`via:WAY`; `via:unknown`:
   * without an origin). Needs `features.origins`.
   */
  origin?: string | undefined;
  /**
   * What memories with `x-omp-untrusted` count: false: they are left out; true: like others; absent: they are
   * answered, but supersede nothing.
   */
  untrusted?: boolean | undefined;
}

export interface AuditQuery {
  /** User the memory belongs to. */
  user_id: string;
  /** Only entries of this caller: the name of a key or the subject of a token. */
  app?: string | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  since?: string | undefined;
  /** ISO 8601 date or date-time, inclusive; UTC when it has no offset. */
  until?: string | undefined;
  /** Maximum entries per page. Default: 100. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface VersionsQuery {
  /** Maximum versions per page. Default: 50. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface ChangesQuery {
  /** `next_cursor` of the previous answer; `now`: only what changes from now on. Default: from the beginning. */
  after?: string | undefined;
  /** Only changes of this user. */
  user_id?: string | undefined;
  /** Glob over the scope: `*` matches any run of characters, `/` included, `?` one character. */
  scope?: string | undefined;
  /** Maximum changes. Default: 100. */
  limit?: number | undefined;
  /** Seconds to wait for a change if there is none. Default: 0. */
  wait?: number | undefined;
  /** `memory`: with the memory as it is now. */
  include?: 'memory' | undefined;
}

export interface UsersQuery {
  /** Only users whose id begins with this text. */
  prefix?: string | undefined;
  /** Maximum users per page. Default: 50. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface ExportQuery {
  /** Only these memories. */
  id?: string | string[] | undefined;
  /** Only memories of this user. */
  user_id?: string | undefined;
  /** Only memories changed at or after this time. */
  since?: string | undefined;
  /** Whether each memory has its `vector`. */
  vectors?: boolean | undefined;
  /** Whether each memory has its `version` and `versions`, if its store has versions. */
  versions?: boolean | undefined;
  /** Maximum memories per page. Default: 100. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface KeysQuery {
  /** Maximum keys per page. Default: 50. */
  limit?: number | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface EmbeddingUsageQuery {
  /** First day, UTC; default: 29 days before the last one. */
  since?: string | undefined;
  /** Last day, UTC; default: today. */
  until?: string | undefined;
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined;
}
