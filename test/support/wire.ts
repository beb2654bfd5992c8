/** What travels on the wire, as SPEC.md words it. Written from the specification, not from the server's code. */
export interface WireMemory {
  readonly id: string;
  readonly content: string;
  readonly user_id: string;
  readonly created_at: string;
  readonly updated_at?: string | null;
  readonly scope?: string | null;
  readonly tags?: readonly string[] | null;
  readonly source?: {
    readonly app?: string | null;
    readonly type?: string | null;
    readonly ref?: string | null;
  } | null;
  readonly confidence?: number | null;
  readonly valid_from?: string | null;
  readonly valid_to?: string | null;
  readonly supersedes?: readonly string[] | null;
  readonly embedding_model?: string | null;
  readonly status?: string | null;
  readonly [extension: `x-${string}`]: unknown;
}

export interface WirePage {
  readonly items: readonly WireMemory[];
  readonly next_cursor?: string | null;
}

export interface WireHit {
  readonly memory: WireMemory;
  readonly score: number;
  readonly 'x-superseded-by'?: readonly string[];
  readonly 'x-copies'?: readonly string[];
  readonly explanation?: {
    readonly cosine: number | null;
    readonly coverage: number | null;
    readonly terms: readonly string[] | null;
    readonly weights: { readonly vector: number; readonly keyword: number };
  };
}

export interface WireContext {
  readonly text: string;
  readonly citations: readonly {
    readonly memory_id: string;
    readonly score: number;
    readonly 'x-copies'?: readonly string[];
    readonly explanation?: {
      readonly search: number | null;
      readonly neighbour: number | null;
      readonly conversation: number | null;
      readonly neighbours: boolean;
    };
  }[];
  readonly token_count: number;
}

/** `GET /audit`, Decision 11. */
export interface WireAuditEntry {
  readonly timestamp: string;
  readonly app: string | null;
  readonly action: string;
  readonly memory_id: string | null;
  readonly scope: string | null;
  readonly request_id: string;
  readonly outcome: string;
}

export interface WireAudit {
  readonly entries: readonly WireAuditEntry[];
}

export interface WireChange {
  readonly cursor: string;
  readonly id: string | null;
  readonly action: string;
  readonly user_id: string;
  readonly scope: string | null;
  readonly at: string;
  readonly caller: string | null;
  readonly memory?: WireMemory;
}

export interface WireChanges {
  readonly changes: readonly WireChange[];
  readonly next_cursor: string;
  readonly more: boolean;
}

export interface WireCapabilities {
  readonly omp_version: string;
  readonly provider: string;
  readonly verbs: readonly string[];
  readonly features: {
    readonly vector_search: boolean;
    readonly keyword_search: boolean;
    readonly graph_queries: boolean;
    readonly temporal: boolean;
    /** Our own: `since` and `until` of search and context. */
    readonly temporal_search: boolean;
    /** Our own: `tag` of search. */
    readonly tag_search: boolean;
    readonly scopes: string;
    readonly max_content_length: number | null;
    readonly supports_audit: boolean;
    readonly supports_supersession: boolean;
    /** Our own: `POST /memories` honours `Idempotency-Key`. */
    readonly idempotency: boolean;
    /** Our own: `GET /changes`. */
    readonly changes: boolean;
    /** Our own: `POST /memories/batch`. */
    readonly batch: boolean;
    /** Our own: search explains scores. */
    readonly explain: boolean;
    /** Our own: search and context take several users. */
    readonly multi_user: boolean;
    /** Our own: adds take `similar`. */
    readonly similar: boolean;
    /** Our own: search takes `distinct`. */
    readonly distinct: boolean;
    /** Our own: list and search take `current`. */
    readonly current: boolean;
    /** Our own: memories keep tags. */
    readonly tags: boolean;
    /** Our own: `X-Consistency-Token` means something. */
    readonly consistency_tokens: boolean;
    /** Our own: `ETag` and `If-Match`. */
    readonly etags: boolean;
    /** Our own: `GET /memories/{id}/versions`. */
    readonly versions: boolean;
    /** Our own: `origin`, Decision 54. */
    readonly origins: boolean;
    readonly neighbours: boolean;
    /** Our own: `GET /users`, `GET /stats`, `DELETE /users/{id}/memories`. */
    readonly users: boolean;
    readonly stats: boolean;
    readonly erase: boolean;
    /** Our own: `POST /users/{id}/rollback`. */
    readonly rollback: boolean;
    /** Our own: `GET /users/{id}/file`. */
    readonly person_file: boolean;
    /** Our own: `POST /retention`. */
    readonly retention: boolean;
    /** Our own: `GET /export`, `POST /import`. */
    readonly export: boolean;
    readonly import: boolean;
    /** Our own: `/freeze`. */
    readonly freeze: boolean;
    /** Our own: `/keys`. */
    readonly keys: boolean;
    /** Our own: `/webhooks`. */
    readonly webhooks: boolean;
  };
  readonly limits?: {
    readonly rate_limit_per_minute: number | null;
    readonly max_search_results: number | null;
    /** Our own. */
    readonly max_batch_size: number;
    /** Our own. */
    readonly similar_score: number | null;
  };
}

/** `GET /memories/{id}/versions`, Decision 55. */
export interface WireVersion {
  readonly version: number;
  readonly memory: WireMemory;
  readonly changed: readonly string[] | null;
  readonly current: boolean;
}

export interface WireVersions {
  readonly items: readonly WireVersion[];
  readonly next_cursor: string | null;
}

/** `GET /users`, Decision 37. */
export interface WireUsers {
  readonly items: readonly { readonly user_id: string; readonly count: number; readonly last_write: string }[];
  readonly next_cursor: string | null;
}

/** `GET /stats`, Decision 37. */
export interface WireStats {
  readonly user_id: string;
  readonly count: number;
  readonly oldest: string | null;
  readonly newest: string | null;
  readonly last_write: string | null;
  readonly scopes: readonly { readonly scope: string | null; readonly count: number }[];
  readonly tags: readonly { readonly tag: string; readonly count: number }[];
  readonly created: {
    readonly per: 'day' | 'month';
    readonly counts: readonly { readonly from: string; readonly count: number }[];
  };
  readonly limits?: Readonly<
    Record<'memories' | 'bytes' | 'adds_per_day', { readonly used: number; readonly limit: number | null }>
  >;
}

/** `POST /memories/batch`, Decision 35. */
export interface WireBatch {
  readonly results: readonly {
    readonly memory?: WireMemory;
    readonly error?: Omit<WireError['error'], 'request_id'>;
  }[];
}

export interface WireError {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly type: string;
    readonly provider?: string;
    readonly request_id?: string;
  };
}

export type { Code as WireErrorCode } from '../../src/conformance/protocol.ts';
export { ERRORS, MAX_BODY_BYTES, VERBS } from '../../src/conformance/protocol.ts';

/** `POST /retention`, Decision 60. */
export interface WireRetention {
  readonly rules: readonly object[];
  readonly looked: number;
  readonly items: readonly {
    readonly user_id: string;
    readonly scope: string | null;
    readonly rule: number;
    readonly memories: number;
  }[];
  readonly failed: number;
  readonly kept: readonly { readonly rule: number; readonly memories: number }[];
  readonly next_cursor: string | null;
}

/** `POST /users/{id}/rollback`, Decision 56. */
export interface WireRollback {
  readonly items: readonly {
    readonly id: string | null;
    readonly action: string;
    readonly reason?: string;
    readonly version?: number;
    readonly memory?: WireMemory;
  }[];
  readonly next_cursor: string | null;
  readonly deletes_known: boolean;
}

export interface WireErased {
  readonly deleted: number;
  readonly receipt: {
    readonly user_id: string;
    readonly at: string;
    readonly complete: boolean;
    readonly stores: readonly {
      readonly name: string;
      readonly removed: Readonly<Record<string, number>>;
      readonly left: Readonly<Record<string, number>>;
      readonly read_back: string;
    }[];
    readonly kept: readonly { readonly what: string; readonly count?: number; readonly why: string }[];
  };
}
