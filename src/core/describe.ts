import type { Memories } from './memories.ts';

/** Version of the protocol this gateway speaks (SPEC, Versioning). */
export const OMP_VERSION = '0.1';

/** The largest `limit` of a search the protocol admits (SPEC, Limits). */
const MAX_SEARCH_RESULTS = 100;

/** The public capability document (SPEC, Capabilities), derived from what the provider has and declares. */
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
    features: {
      vector_search: capabilities.vector_search,
      keyword_search: capabilities.keyword_search,
      graph_queries: false,
      temporal: capabilities.temporal,
      scopes: capabilities.scopes,
      max_content_length: capabilities.max_content_length,
      supports_audit: provider.audit !== undefined,
      supports_supersession: capabilities.supports_supersession,
      /** `POST /memories` honours `Idempotency-Key`. */
      idempotency: provider.addOnce !== undefined,
      /** Memories keep tags, and `GET /memories` filters by them. */
      tags: capabilities.tags,
      /** Answers carry `X-Consistency-Token`, which makes other replicas wait for what this one wrote. */
      consistency_tokens: capabilities.consistency_tokens,
    },
    limits: {
      rate_limit_per_minute: rateLimitPerMinute,
      max_search_results: Math.min(capabilities.max_search_results ?? MAX_SEARCH_RESULTS, MAX_SEARCH_RESULTS),
    },
  };
}
