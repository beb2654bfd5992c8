import { MAX_BATCH_SIZE } from '#contract';
import type { Memories } from './with-embedder.ts';

/** Version of the protocol this gateway speaks (SPEC, Versioning). */
export const OMP_VERSION = '0.1';

/** The largest `limit` of a search in the protocol (SPEC, Limits). */
const MAX_SEARCH_RESULTS = 100;

/** The public capability document (SPEC, Capabilities), derived from the provider's methods and capabilities. */
export function describe(provider: Memories, rateLimitPerMinute: number | null) {
  const { capabilities } = provider;
  const verbs = [
    provider.add && 'add',
    provider.search && 'search',
    'get',
    provider.update && 'update',
    provider.delete && 'delete',
    provider.list && 'list',
    // The gateway builds context from search.
    provider.search && 'context',
    provider.audit && 'audit',
  ].filter((verb) => verb !== undefined);
  return {
    omp_version: OMP_VERSION,
    provider: provider.name,
    verbs,
    /** What makes the vectors. */
    embedding: provider.embedding ?? null,
    features: {
      vector_search: capabilities.vector_search,
      keyword_search: capabilities.keyword_search,
      graph_queries: false,
      temporal: capabilities.temporal,
      scopes: capabilities.scopes,
      max_content_length: capabilities.max_content_length,
      supports_audit: provider.audit !== undefined,
      supports_supersession: capabilities.supports_supersession,
      /** `POST /memories` supports `Idempotency-Key`. */
      idempotency: provider.addIdempotent !== undefined,
      /** `POST /memories/batch` exists. */
      batch: provider.batch !== undefined,
      /** `explain=true` of search. */
      explain: provider.search !== undefined && capabilities.explain === true,
      /** `current=true` of list and search. */
      current: provider.list !== undefined || provider.search !== undefined,
      /** Search and context take several users. */
      multi_user: provider.search !== undefined,
      /** Memories have tags, and `GET /memories` filters by them. */
      tags: capabilities.tags,
      /** Responses have `X-Consistency-Token`: with it, other replicas wait until they see the writes of this one. */
      consistency_tokens: capabilities.consistency_tokens,
      /** Memories have an `ETag`, and changes support `If-Match`. */
      etags: capabilities.etags,
      /** `GET /users` and `GET /stats`. */
      users: provider.users !== undefined,
      stats: provider.userStats !== undefined,
      /** `GET /map` exists. */
      map: provider.list !== undefined && provider.vectorsOf !== undefined,
      /** `DELETE /users/{id}/memories` exists. */
      erase: provider.erase !== undefined,
      /** `GET /export` and `POST /import`. */
      export: provider.scan !== undefined,
      import: provider.restore !== undefined,
      /** `/keys` exists. It needs a key with the grant `admin:*`. */
      keys: provider.keys !== undefined,
    },
    limits: {
      rate_limit_per_minute: rateLimitPerMinute,
      max_search_results: Math.min(capabilities.max_search_results ?? MAX_SEARCH_RESULTS, MAX_SEARCH_RESULTS),
      max_batch_size: MAX_BATCH_SIZE,
    },
  };
}
