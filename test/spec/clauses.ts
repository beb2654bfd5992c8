/**
 * Every clause of SPEC.md: each statement of its prose and each row of its tables, named as tests cite them.
 * `Decision N` is `docs/decisions`, page N. A string instead of `true` says why no test cites the clause;
 * once one does, the reason has to go.
 */
export type Coverage = true | string;

const rows = (section: string, names: readonly string[]): Record<string, Coverage> =>
  Object.fromEntries(names.map((name) => [`SPEC ${section} ${name}`, true]));

const decisions = (last: number): Record<string, Coverage> =>
  Object.fromEntries(Array.from({ length: last }, (_, index) => [`Decision ${index + 1}`, true]));

export const CLAUSES: Readonly<Record<string, Coverage>> = {
  ...rows('Service', ['users', 'capabilities', 'verbs', 'json', 'no wrapper', 'port', 'one envelope']),

  ...rows('Memory', ['id', 'content', 'user_id', 'created_at', 'updated_at', 'scope', 'tags', 'source', 'confidence']),
  ...rows('Memory', ['valid_from', 'valid_to', 'supersedes', 'embedding_model', 'status', 'optional fields']),
  ...rows('Memory', ['source.app', 'source.type', 'source.ref']),
  ...rows('MemoryPage', ['items', 'next_cursor', 'opaque']),
  ...rows('SearchResult', ['memory', 'score']),
  ...rows('Capabilities', ['omp_version', 'provider', 'verbs', 'features', 'limits']),
  ...rows('Capabilities', ['features.vector_search', 'features.keyword_search', 'features.graph_queries']),
  ...rows('Capabilities', ['features.temporal', 'features.scopes', 'features.max_content_length']),
  ...rows('Capabilities', ['features.supports_audit', 'features.supports_supersession']),
  ...rows('Capabilities', ['limits.rate_limit_per_minute', 'limits.max_search_results']),
  ...rows('Health', ['status', 'provider']),

  ...rows('States', ['queued', 'indexing', 'done', 'failed', 'absent']),

  'SPEC POST /memories': true,
  ...rows('POST /memories', ['content', 'user_id', 'scope', 'tags', 'source', 'confidence', 'valid_from', 'valid_to']),
  ...rows('POST /memories', ['supersedes']),
  'SPEC GET /memories/{id}': true,
  'SPEC GET /memories/{id} unknown': true,
  'SPEC PATCH /memories/{id}': true,
  ...rows('PATCH /memories/{id}', ['unknown', 'content', 'scope', 'tags', 'confidence', 'valid_to', 'supersedes']),
  'SPEC DELETE /memories/{id}': true,
  ...rows('DELETE /memories/{id}', ['unknown', 'history']),
  'SPEC GET /memories': true,
  ...rows('GET /memories', ['user_id', 'scope', 'tag', 'since', 'until', 'limit', 'cursor', 'pagination']),
  'SPEC GET /memories/search': true,
  ...rows('GET /memories/search', ['requires', 'fallback', 'q', 'user_id', 'scope', 'limit', 'min_score', 'order']),
  'SPEC GET /capabilities': true,
  'SPEC GET /healthz': true,

  'SPEC Authentication 1': true,
  'SPEC Authentication 2': true,
  'SPEC Authentication 3': true,
  'SPEC Authentication 4': true,
  'SPEC Authentication 5': true,

  ...rows('Errors', ['envelope', 'code', 'message', 'type', 'provider', 'request_id']),
  ...rows('Errors', ['unauthorized', 'scope_denied']),
  ...rows('Errors', ['not_found', 'invalid_request', 'rate_limited', 'unsupported_capability', 'provider_error']),
  ...rows('Errors', ['payload_too_large']),

  ...rows('Limits', ['body', 'list', 'search', 'features.max_content_length', 'limits.rate_limit_per_minute']),
  ...rows('Limits', ['limits.max_search_results']),

  'SPEC Versioning 1': true,
  'SPEC Versioning 2': true,
  'SPEC Versioning 3': true,
  'SPEC Versioning 4': 'binds clients: it asks them to ignore fields they do not know',
  'SPEC Versioning 5': 'binds the people who publish new versions',

  ...decisions(43),
  'Decision 45': true,
  'Decision 32': 'a setting that no longer exists: nothing to test',
};
