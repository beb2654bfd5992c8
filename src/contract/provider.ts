import type { AuditLog, AuditOptions } from './audit.ts';
import type { Call } from './call.ts';
import type { EmbedderIdentity, Vector } from './embedder.ts';
import type { IdempotentAdd } from './idempotency.ts';
import type { Backlog, IngestionQueue } from './ingestion.ts';
import type { KeyStore } from './keys.ts';
import type { Memory, MemoryPatch, NewMemory, Within } from './record.ts';

/**
 * Names one record for whoever may see it: a record of another user, or outside the scopes, counts as absent. Required,
 * since a filter that can be left out will be. Applied inside the backend's query wherever the backend can, so that
 * update and delete act on what they checked.
 */
export interface Ref {
  readonly id: string;
  /** The owner must be one of these; null: anybody. */
  readonly users: readonly string[] | null;
  readonly within: Within;
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
  readonly within: Within;
  readonly limit: number;
  /**
   * Bytes of an answer (`recordBytes`). The record with which an answer passes this is its last one, so that whoever asks
   * sees that there are more. A backend that can does not send the others.
   */
  readonly max_bytes: number;
}

export interface SearchQuery {
  readonly user_id: string;
  readonly text: string;
  /** Of the text. */
  readonly vector: Vector;
  /** Plain string prefix of the scope. Unscoped records never match. */
  readonly scope?: string;
  readonly tags: readonly string[];
  /** Records outside are as if they were not stored: they do not count for the rarity of terms either. */
  readonly within: Within;
  readonly limit: number;
  /** As in a `ListQuery`. */
  readonly max_bytes: number;
  /** Records with a longer content, in UTF-8, are no hits. They count for the rarity of terms. */
  readonly max_content_bytes?: number;
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
  /**
   * `tags` and `none`: queries carry neither `scope` nor `within`, records come back without a scope. `tags`: the gateway
   * emulates scopes with reserved tags; only for stores that nobody else writes, since a tag then grants access. `none`:
   * requests that use scopes are rejected.
   */
  readonly scopes: 'native' | 'tags' | 'none';
  /** Whether records keep tags and queries can ask for them. */
  readonly tags: boolean;
  /** In Unicode code points; null: bounded by the request size alone. */
  readonly max_content_length: number | null;
  readonly supports_supersession: boolean;
  /** The largest `limit` a search may carry; null: unbounded. */
  readonly max_search_results: number | null;
  /** The most records the gateway may read to fill one page of a list that it has to refine; null: any number. */
  readonly max_list_scan: number | null;
  /** Whether `Call.consistency` means something here: what was written through another gateway may not be visible yet. */
  readonly consistency_tokens: boolean;
}

/** What an operator may want to see of a provider at this moment. What it does not have is left out. */
export interface ProviderStats {
  /** Connections to the backend. */
  readonly connections?: { readonly open: number; readonly busy: number; readonly most: number };
  /** Requests to the backend that wait for their turn. */
  readonly waiting?: number;
}

/**
 * One backend. `get` and `ping` are the least a provider can do; every other verb is its own capability flag.
 * Absence is a value; trouble is a thrown `OmpError`. Lists are ordered by `created_at`, then `id`, both descending;
 * hits by `score` descending, then in list order.
 */
export interface Provider {
  /** As configured, and as it appears in `/capabilities` and in errors. */
  readonly name: string;
  readonly capabilities: ProviderCapabilities;
  /** `vector` is that of the content. Resolves only once the record is durable to the degree this backend promises. */
  add?(input: NewMemory, vector: Vector, call: Call): Promise<Memory>;
  /** Present when adds may be repeated under a key. */
  readonly idempotency?: IdempotentAdd;
  get(ref: Ref, call: Call): Promise<Memory | undefined>;
  /**
   * Atomic: concurrent patches of one record do not lose each other's fields, nor make it larger than one may be: that is
   * `payload_too_large`. A patch that changes nothing leaves `updated_at`. `vector` is that of the patch's content, null
   * where it has none.
   */
  update?(ref: Ref, patch: MemoryPatch, vector: Vector, call: Call): Promise<Memory | undefined>;
  /** False when there was nothing to delete. */
  delete?(ref: Ref, call: Call): Promise<boolean>;
  list?(query: ListQuery, call: Call): Promise<Memory[]>;
  search?(query: SearchQuery, call: Call): Promise<SearchHit[]>;
  /** Why records cannot be changed here and what an operator may set; undefined: they can, or nothing helps. */
  readonly read_only?: string;
  /** Present when this provider records who did what. */
  readonly audit?: AuditLog;
  /** Present when this provider keeps API keys. */
  readonly keys?: KeyStore;
  /** Throws unless the backend answers. */
  ping(call: Call): Promise<void>;
  stats?(): ProviderStats;
  /** Present when vectors may be computed after an add is answered. The gateway works it off. */
  readonly ingestion?: IngestionQueue;
  /** What the queue holds. Asks the backend. */
  backlog?(call: Call): Promise<Backlog>;
  close(): Promise<void>;
}

export interface RankingOptions {
  readonly mode: 'hybrid' | 'vector' | 'keyword';
  /** Weight of the keyword part in hybrid mode, 0 to 1. */
  readonly keyword_weight: number;
}

/** The little of a logger that providers need. Never give it record contents, user ids or credentials. */
export interface Log {
  /** Absent: nobody wants to know. */
  debug?(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the gateway hands to every provider it opens. */
export interface ProviderContext {
  /** What makes all vectors that the provider gets; undefined when `ranking.mode` is `keyword`, and all are null. */
  readonly embedder: EmbedderIdentity | undefined;
  readonly ranking: RankingOptions;
  /** Undefined: nothing is to be recorded. */
  readonly audit: AuditOptions | undefined;
  /** Folder for durable files of this gateway; made by whoever needs it. */
  readonly data_dir: string;
  /** The size (`recordBytes`) beyond which no record grows by a patch; unset: `MAX_RECORD_BYTES`. */
  readonly max_record_bytes?: number;
  readonly log: Log;
}
