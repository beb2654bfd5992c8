import type { Embedder } from './embedder.ts';
import type { Memory, MemoryPatch, NewMemory } from './record.ts';

/** What accompanies every request down to the backend. Required everywhere: an optional signal gets forgotten. */
export interface Call {
  /** Aborted when the client goes away or the request's deadline passes; its `reason` tells which. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /**
   * The work, or the signal's reason as soon as that fires: for work that does not listen to the signal. Offered by
   * callers for whom making a signal for every call is too dear; the guard around every provider uses it.
   */
  readonly unlessAborted?: <Result>(work: Promise<Result>) => Promise<Result>;
}

/** Names one record. With `user_id`, a record of another user counts as absent. */
export interface Ref {
  readonly id: string;
  readonly user_id?: string;
}

/** A place in a user's list: the record that was returned last. Works on every backend, survives inserts and deletes. */
export interface Position {
  readonly created_at: string;
  readonly id: string;
}

export interface ListQuery {
  readonly user_id: string;
  /** Glob over the scope: `*` any run of characters, `?` one, the rest literal. Unscoped records never match. */
  readonly scope?: string;
  /** All of these must be present. */
  readonly tags: readonly string[];
  /** Both inclusive on `created_at`. */
  readonly since?: string;
  readonly until?: string;
  /** Only records that come after this one in the order of the list. */
  readonly after?: Position;
  readonly limit: number;
}

export interface SearchQuery {
  readonly user_id: string;
  readonly text: string;
  /** Plain string prefix of the scope. Unscoped records never match. */
  readonly scope?: string;
  readonly tags: readonly string[];
  readonly limit: number;
}

export interface SearchHit {
  readonly memory: Memory;
  /** 0 to 1, what the hits are ordered by. */
  readonly score: number;
}

/** Facts the method list cannot show. Verbs are not declared: a verb is supported when its method exists. */
export interface ProviderCapabilities {
  /** How search ranks; both false when there is no `search`. */
  readonly vector_search: boolean;
  readonly keyword_search: boolean;
  /** Whether list honours `since` and `until`. */
  readonly temporal: boolean;
  /** `none`: queries never carry a scope and records come back without one; the gateway emulates. */
  readonly scopes: 'native' | 'none';
  /** In Unicode code points; null: bounded by the request size alone. */
  readonly max_content_length: number | null;
  readonly supports_supersession: boolean;
  /** The largest `limit` a search may carry; null: unbounded. */
  readonly max_search_results: number | null;
}

/**
 * One backend. `add`, `get` and `ping` are the least a provider can do; every other verb is its own capability flag.
 * Absence is a value; trouble is a thrown `OmpError`. Lists are ordered by `created_at`, then `id`, both descending;
 * hits by `score` descending, then in list order.
 */
export interface Provider {
  /** As configured, and as it appears in `/capabilities` and in errors. */
  readonly name: string;
  readonly capabilities: ProviderCapabilities;
  /** Resolves only once the record is durable to the degree this backend promises. */
  add(input: NewMemory, call: Call): Promise<Memory>;
  get(ref: Ref, call: Call): Promise<Memory | undefined>;
  /** Atomic: concurrent patches of one record do not lose each other's fields. A patch that changes nothing leaves `updated_at`. */
  update?(ref: Ref, patch: MemoryPatch, call: Call): Promise<Memory | undefined>;
  /** False when there was nothing to delete. */
  delete?(ref: Ref, call: Call): Promise<boolean>;
  list?(query: ListQuery, call: Call): Promise<Memory[]>;
  search?(query: SearchQuery, call: Call): Promise<SearchHit[]>;
  /** Throws unless the backend answers. */
  ping(call: Call): Promise<void>;
  close(): Promise<void>;
}

export interface RankingOptions {
  readonly mode: 'hybrid' | 'vector' | 'keyword';
  /** Weight of the keyword part in hybrid mode, 0 to 1. */
  readonly keyword_weight: number;
}

/** The little of a logger that providers need. Never give it record contents, user ids or credentials. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the gateway hands to every provider it opens. */
export interface ProviderContext {
  /** Undefined exactly when `ranking.mode` is `keyword`. */
  readonly embedder: Embedder | undefined;
  readonly ranking: RankingOptions;
  /** Folder for durable files of this gateway; made by whoever needs it. */
  readonly data_dir: string;
  readonly log: Log;
}
