import type { AuditLog, AuditOptions } from './audit.ts';
import type { Call } from './call.ts';
import type { ChangePart, ChangesQuery } from './changes.ts';
import type { EmbedderIdentity, Vector } from './embedder.ts';
import type { UsageStore } from './embedding-usage.ts';
import type { EraseRequest, Holdings } from './erase.ts';
import type { OmpError } from './errors.ts';
import type { ExportedMemory, ExportPart, ExportQuery } from './export.ts';
import type { Freezing } from './freeze.ts';
import type { KeyClaim, KeyQuery, KeyUse } from './idempotency.ts';
import type { Backlog, IngestionQueue } from './ingestion.ts';
import type { KeyStore } from './keys.ts';
import type { Written } from './origin.ts';
import type { Memory, MemoryPatch, NewMemory, Ref, Visible } from './record.ts';
import type { LimitsOf, UserUsage } from './user-limits.ts';
import type { StatsQuery, UserListQuery, UserPart, UserStats } from './users.ts';
import type { VersionOptions, VersionStore } from './versions.ts';
import type { WebhookStore } from './webhooks.ts';

/** A position in a user's list: the last returned record. Works on every backend and survives inserts and deletes. */
export interface Position {
  readonly created_at: string;
  readonly id: string;
}

/** Bounds of `created_at`, both inclusive. */
export interface Times {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export interface ListQuery extends Visible, Times {
  readonly user_id: string;
  /**
   * Glob over the scope: `*` matches any run of characters, `?` one character. A list of globs is as in `Within`. A single glob
   * is not empty, and unscoped records do not match it.
   */
  readonly scope?: string | readonly string[];
  /** The record must have all of these. */
  readonly tags: readonly string[];
  readonly written?: Written | undefined;
  /** Only records after this one in list order. */
  readonly after?: Position;
  readonly limit: number;
  /**
   * Limit of the result in bytes (`recordBytes`). The first record that exceeds it is included and is the last one, so that
   * the caller can detect the limit. The backend should not send more than that.
   */
  readonly max_bytes: number;
}

/**
 * Asks for the memories next to others in their conversations. A conversation is all of one user with the same `source.app`,
 * `source.ref` and `scope`, in the order of `created_at`, then `id`. Since they have one scope, `within` and `outside` decide it for all.
 */
export interface NeighboursQuery extends Visible {
  readonly user_id: string;
  /** Ids of records with a `source.ref` that the gateway has read just before, at most 100. */
  readonly ids: readonly string[];
  /** A neighbour that does not match is left out; the one beyond it does not take its place. */
  readonly written?: Written | undefined;
  /** The same for a longer content, in UTF-8. */
  readonly max_content_bytes?: number;
  /** Limit of the result in bytes, as in `ListQuery`. */
  readonly max_bytes: number;
}

/**
 * Records outside the allowed scopes count as absent, also for the rarity of terms. `Times`, given only if
 * `capabilities.temporal_search`, decide like `scope` and `tags` which records are hits, not which count for the rarity.
 */
export interface SearchQuery extends Visible, Times {
  readonly user_id: string;
  readonly text: string;
  /** The vector of `text`. */
  readonly vector: Vector;
  /** Plain string prefix of the scope. Unscoped records never match. */
  readonly scope?: string;
  readonly tags: readonly string[];
  /** Like `scope` and `tags`, it decides which records are hits, not which count for the rarity of terms. */
  readonly written?: Written | undefined;
  readonly limit: number;
  /** Limit of the result in bytes, as in `ListQuery`. */
  readonly max_bytes: number;
  /** Records with a longer content, in UTF-8, are no hits, but count for the rarity of terms. */
  readonly max_content_bytes?: number;
  /** Hits need `parts`. Only if the provider declares `explain`. */
  readonly explain?: boolean;
}

export interface SearchHit {
  readonly memory: Memory;
  /** A number from 0 to 1, which orders the hits. */
  readonly score: number;
  /** May be left out by a provider that searches by vectors alone or by keywords alone: the score is that part. */
  readonly parts?: ScoreParts;
}

/** What a score is made of: `weights.vector · cosine + weights.keyword · coverage`. */
export interface ScoreParts {
  /** 0 to 1; a negative cosine counts as 0. */
  readonly cosine: number;
  /** The share of the query's rarity that the content covers, 0 to 1. */
  readonly coverage: number;
  readonly weights: { readonly vector: number; readonly keyword: number };
}

/** Facts that the methods do not show. A verb is supported if its method exists. */
export interface ProviderCapabilities {
  /** How search ranks; both false without `search`. */
  readonly vector_search: boolean;
  readonly keyword_search: boolean;
  /** Whether `list` supports `since` and `until`. */
  readonly temporal: boolean;
  /** The same of `search`; absent: no. */
  readonly temporal_search?: boolean;
  /**
   * `tags` and `none`: queries have neither `scope` nor `within`, and records have no scope. `tags`: the gateway emulates
   * scopes with reserved tags; only for stores that no other application writes, since a tag then grants access. `none`: the
   * gateway rejects requests that use scopes.
   */
  readonly scopes: 'native' | 'tags' | 'none';
  /** Whether records have tags and queries can filter by them. */
  readonly tags: boolean;
  /** Maximum Unicode code points; null: only the request size limits them. */
  readonly max_content_length: number | null;
  readonly supports_supersession: boolean;
  /** The largest `limit` of a search; null: unlimited. */
  readonly max_search_results: number | null;
  /** Maximum records that the gateway may read for one page of a list that it filters itself; null: unlimited. */
  readonly max_list_scan: number | null;
  /** Whether the provider uses `Call.consistency`: writes of another gateway may become visible with a delay. */
  readonly consistency_tokens: boolean;
  /** Whether the provider supports `Ref.versions`, also against concurrent changes through another gateway. */
  readonly etags: boolean;
  /** Whether `list` and `search` support `written`; absent: no. */
  readonly origins?: boolean;
  /** Whether another application fills the store, so that it may hold more of a user than memories; absent: no. */
  readonly mapped?: boolean;
  /** Of a mapped store: whether its `export` has all that its `list` has, so that a file of a person is read by it; absent: no. */
  readonly complete_export?: boolean;
  /** False: memories keep no `ORIGIN`. Set by the gateway. */
  readonly stamped?: false;
  /** Whether `search` supports `explain`; absent: no. */
  readonly explain?: boolean;
}

/** A memory to add. */
export interface NewVector {
  readonly input: NewMemory;
  /** The vector of the content. */
  readonly vector: Vector;
}

/** What limits a change. */
interface Limited {
  /**
   * Given only if the provider has `userUsage`, and limits of users are configured. Exact, whatever is added at the same time, and through
   * any number of gateways; a change that exceeds one has the error `overLimit` as its outcome.
   */
  readonly limits?: LimitsOf | undefined;
}

export interface AddRequest extends NewVector, Limited {
  /** Given only if the provider has `keyUse`. */
  readonly key?: KeyClaim | undefined;
}

export interface BatchRequest extends Limited {
  readonly items: readonly NewVector[];
  readonly key?: KeyClaim | undefined;
}

/** The stored memory, or why it was not stored. */
export type BatchOutcome = Memory | OmpError;

/** Only `bytes` limits an update, of a content that becomes longer. */
export interface UpdateRequest extends Limited {
  readonly ref: Ref;
  readonly patch: MemoryPatch;
  /** The vector of the patch's content; null if it has none. */
  readonly vector: Vector;
  /**
   * The memory as the gateway has read it for this request, if the patch changes its content: the provider need not read it
   * again.
   */
  readonly current?: Memory | undefined;
}

export interface ImportRequest {
  readonly items: readonly ExportedMemory[];
  /** Whether a memory with the same id and user is replaced. */
  readonly replace: boolean;
}

/** Current statistics of a provider, for the metrics. */
export interface ProviderStats {
  /** Connections to the backend. */
  readonly connections?: { readonly open: number; readonly busy: number; readonly max: number };
  /** Queued requests to the backend. */
  readonly queue_length?: number;
}

/**
 * One backend. A method takes one request, if any, and the call. It has a kernel, which is `get`, `ping` and `close`, and facets, each of which
 * declares a capability and comes whole (`FACETS`). Absence is a value; a failure is
 * a thrown `OmpError`. Lists are ordered by `created_at`, then `id`, both descending;
 * hits by `score` descending, then in list order.
 */
export interface Provider {
  /** The name in the configuration, in `/capabilities` and in errors. */
  readonly name: string;
  readonly capabilities: ProviderCapabilities;
  /**
   * Throws what `add` or `update` would throw for these fields whatever the backend holds. The gateway calls it before it
   * computes a vector. `vector`: one that a memory brings along from another store.
   */
  check?(fields: Partial<NewMemory>, vector?: Vector): void;
  /**
   * Resolves once the record is as durable as this backend promises. Undefined: another request has used the key, and nothing
   * was added.
   */
  add?(request: AddRequest, call: Call): Promise<Memory | undefined>;
  /**
   * Adds several memories, in one transaction if the backend has transactions. Outcomes in order. Rejects only if it added none, or if
   * that is unknown. Undefined: as for `add`. Absent: the gateway calls `add` one by one.
   */
  batch?(request: BatchRequest, call: Call): Promise<BatchOutcome[] | undefined>;
  /** Present when adds can be idempotent, which needs `batch`. The use of a key within `IDEMPOTENCY_TTL_MS`; undefined: there is none. */
  keyUse?(query: KeyQuery, call: Call): Promise<KeyUse | undefined>;
  get(ref: Ref, call: Call): Promise<Memory | undefined>;
  /**
   * Atomic: concurrent patches of one record do not lose each other's fields. Throws `payload_too_large` if the record
   * would become too large. A patch that changes nothing keeps `updated_at`.
   */
  update?(request: UpdateRequest, call: Call): Promise<Memory | undefined>;
  /** False: there was nothing to delete. */
  delete?(ref: Ref, call: Call): Promise<boolean>;
  list?(query: ListQuery, call: Call): Promise<Memory[]>;
  search?(query: SearchQuery, call: Call): Promise<SearchHit[]>;
  /**
   * The memory before and the one after each of these in its conversation: each once, without these themselves. Must be quick
   * however many memories a conversation, and a user, has. Absent: `context` ranks each memory by itself.
   */
  neighbours?(query: NeighboursQuery, call: Call): Promise<Memory[]>;
  /** Users in a fixed order, which may differ between providers. */
  users?(query: UserListQuery, call: Call): Promise<UserPart>;
  userStats?(query: StatsQuery, call: Call): Promise<UserStats>;
  /** What a user has, exactly, in all scopes. Present when changes can be limited (`LimitsOf`). */
  userUsage?(request: { readonly user_id: string }, call: Call): Promise<UserUsage>;
  /**
   * Deletes all memories of a user, with everything that belongs to them, and returns how much it removed; a number: of memories. An
   * idempotency key stays as `ERASED_USE`. `audit_entries` are those that name the user no more (`AuditOptions.erased_users`). After a
   * failure some may be deleted; repeating it goes on.
   */
  erase?(request: EraseRequest, call: Call): Promise<number | Holdings>;
  /** What the store has of a user, read from the store itself. Absent: after an erase the gateway asks `list`. */
  holdings?(request: EraseRequest, call: Call): Promise<Holdings>;
  /**
   * All memories of the store in a fixed order, with their vectors if the query asks for them. A memory that is added or deleted
   * meanwhile may be missing; no other may, and none comes twice.
   */
  export?(query: ExportQuery, call: Call): Promise<ExportPart>;
  /**
   * Stores memories with their ids and times, and returns for each whether it did. It does not if the id exists: without
   * `replace` in any case, with it if the id belongs to another user. A provider with versions keeps what it replaces, adds the versions that come along where it has none of their numbers, and goes on counting from the higher number.
   */
  import?(request: ImportRequest, call: Call): Promise<boolean[]>;
  /** Why records are read-only and which setting changes that; undefined: they are not, or no setting helps. */
  readonly read_only?: string;
  /** Present when this provider has an audit log. */
  readonly audit?: AuditLog;
  /**
   * The feed of changes: the entries of the audit log about changed memories, in an order that never changes. What was read once at a
   * cursor is never missing, and comes before what other transactions commit later. Cursors are URL-safe texts. Throws
   * `invalid_request` for a cursor of another form, and `beginAnew` if changes after it are not known any more.
   */
  changes?(query: ChangesQuery, call: Call): Promise<ChangePart>;
  /** Seconds for which an open transaction has held the feed of changes back; 0: none does. */
  changesHeld?(call: Call): Promise<number>;
  /** Present when versions of memories are kept. */
  readonly versions?: VersionStore;
  /** Present when the store can be frozen. */
  readonly freezing?: Freezing;
  /** Present when this provider stores API keys. */
  readonly keys?: KeyStore;
  /** Present when this provider stores webhooks. */
  readonly webhooks?: WebhookStore;
  /** Present when this provider stores what embedding costs. Absent: the gateway keeps that in its process. */
  readonly embeddingUsage?: UsageStore;
  /** Throws if the backend does not answer. */
  ping(call: Call): Promise<void>;
  stats?(): ProviderStats;
  /** Present when vectors may be computed after the response to an add. The gateway processes the queue. */
  readonly ingestion?: IngestionQueue;
  /** The length of the ingestion queue, read from the backend. */
  backlog?(call: Call): Promise<Backlog>;
  close(): Promise<void>;
}

export interface RankingOptions {
  readonly mode: 'hybrid' | 'vector' | 'keyword';
  /** Weight of the keyword part in hybrid mode, 0 to 1. */
  readonly keyword_weight: number;
}

/** The logger of providers. Never log record contents, user ids or credentials. */
export interface Log {
  /** Absent: debug logging is off. */
  debug?(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the gateway passes to every provider. */
export interface ProviderContext {
  /** The embedder of all vectors; undefined when `ranking.mode` is `keyword`: then all vectors are null. */
  readonly embedder: EmbedderIdentity | undefined;
  readonly ranking: RankingOptions;
  /** Undefined: auditing is off. */
  readonly audit: AuditOptions | undefined;
  /** Undefined: no versions are kept. */
  readonly versions?: VersionOptions | undefined;
  /** Folder for durable files of this gateway. A provider creates it if it needs it. */
  readonly data_dir: string;
  /** Whether changes come with limits of users, so that what an import stores has to be counted too. */
  readonly user_limits?: boolean;
  /** Largest size (`recordBytes`) of a patched record; unset: `MAX_RECORD_BYTES`. */
  readonly max_record_bytes?: number;
  readonly log: Log;
}
