/** What the gateway and its stores can do, and their state. */

export type Verb = 'add' | 'search' | 'get' | 'update' | 'delete' | 'list' | 'context' | 'audit';

export interface Capabilities {
  omp_version: string;
  /** Name of the backend. */
  provider: string;
  verbs: Verb[];
  /** What makes the vectors; null: there are none. */
  embedding?: { model: string; dimensions: number } | null;
  /** Since when the store takes no changes, because it is being moved; null: it takes them. */
  frozen?: { since: string } | null;
  features: {
    vector_search: boolean;
    keyword_search: boolean;
    graph_queries: boolean;
    temporal: boolean;
    temporal_search?: boolean;
    scopes: 'native' | 'tags' | 'none';
    max_content_length: number | null;
    supports_audit: boolean;
    supports_supersession: boolean;
    idempotency?: boolean;
    tags?: boolean;
    tag_search?: boolean;
    consistency_tokens?: boolean;
    batch?: boolean;
    etags?: boolean;
    origins?: boolean;
    neighbours?: boolean;
    versions?: boolean;
    users?: boolean;
    stats?: boolean;
    erase?: boolean;
    rollback?: boolean;
    person_file?: boolean;
    retention?: boolean;
    export?: boolean;
    import?: boolean;
    changes?: boolean;
    keys?: boolean;
    embedding_usage?: boolean;
    webhooks?: boolean;
    freeze?: boolean;
    explain?: boolean;
    multi_user?: boolean;
    current?: boolean;
    distinct?: boolean;
    similar?: boolean;
  };
  limits?: {
    rate_limit_per_minute: number | null;
    max_search_results: number | null;
    max_batch_size?: number;
    /** Least score of a memory that says nearly the same. */
    similar_score?: number | null;
  };
  /** Stores that are mounted at scopes; the rest is about the root store. */
  'x-stores'?: MountedStore[];
}

/** A store of a gateway with several. */
export interface MountedStore extends Pick<Capabilities, 'provider' | 'verbs' | 'embedding' | 'features' | 'limits'> {
  /** The ids of its memories begin with `~name~`. */
  name: string;
  /** Its memories have this scope, or one below. */
  mount: string;
}

/** Null: the store is not frozen, or was not. */
export interface Freeze {
  since: string | null;
  /** The name of the key. */
  by: string | null;
}

export interface FreezeState extends Freeze {
  /** For how many seconds an open transaction has held back the feed of changes; 0: none does. */
  feed_held_seconds: number;
}

export interface Health {
  status: 'ok';
  provider: string;
}
