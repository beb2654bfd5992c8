import { isRecord } from '../../src/conformance/kit.ts';
import {
  again,
  answer,
  askedBy,
  asking,
  type Body,
  body,
  error,
  features,
  hits,
  ignoring,
  isAt,
  type Mutant,
  memories,
  status,
  undead,
  without,
} from './mutate.ts';

/** One deviation from the specification each, and the case that must find it. */
export const MUTANTS: readonly (readonly [deviation: string, caught: string, mutant: Mutant])[] = [
  ['capabilities without omp_version', 'capabilities.document', body('capabilities', without('omp_version'))],
  ['capabilities in a wrapper', 'capabilities.document', body('capabilities', (data) => ({ data }))],
  [
    'a verb of its own',
    'capabilities.verbs',
    body('capabilities', (c) => ({ ...c, verbs: [...(c.verbs as []), 'merge'] })),
  ],
  ['features.scopes true', 'capabilities.features', features({ scopes: true })],
  ['features.max_content_length as a text', 'capabilities.features', features({ max_content_length: '100' })],
  ['a limit of 0', 'capabilities.limits', body('capabilities', (c) => ({ ...c, limits: { max_search_results: 0 } }))],
  [
    'search declared without a feature for it',
    'capabilities.search-agrees',
    features({ vector_search: false, keyword_search: false }),
  ],
  ['audit missing', 'audit.reachable', status('audit', 200, 404)],
  ['audit declared in one place only', 'capabilities.audit-agrees', features({ supports_audit: false })],
  [
    'an undeclared verb that answers',
    'capabilities.undeclared',
    body('capabilities', (c) => ({ ...c, verbs: (c.verbs as string[]).filter((verb) => verb !== 'list') })),
  ],
  ['status healthy', 'health.ok', body('health', (health) => ({ ...health, status: 'healthy' }))],
  ['created with 200', 'add.created', status('add', 201, 200)],
  ['a new memory in a wrapper', 'add.created', body('add', (memory) => ({ memory }))],
  ['the same id twice', 'add.id', memories('add', (memory) => ({ ...memory, id: 'mem_1' }))],
  [
    'content that is trimmed',
    'add.content',
    asking('add', ({ body }) => {
      if (typeof body.content === 'string') body.content = body.content.trim();
    }),
  ],
  [
    'sorted tags',
    'add.tags',
    asking('add', ({ body }) => {
      if (Array.isArray(body.tags)) body.tags.sort();
    }),
  ],
  ['dropped tags', 'add.tags-stored', ignoring('add', 'tags')],
  [
    'confidence rounded',
    'add.confidence',
    memories('add', (memory) => ({ ...memory, confidence: memory.confidence && 1 })),
  ],
  [
    'source.type lost',
    'add.source',
    memories('get', (memory) => ({ ...memory, source: memory.source && { app: (memory.source as Body).app } })),
  ],
  [
    'scope in upper case',
    'add.scope',
    memories('get', (memory) => ({ ...memory, scope: (memory.scope as string | null)?.toUpperCase() })),
  ],
  ['supersedes not stored although declared', 'add.supersedes', ignoring('add', 'supersedes')],
  ...['created_at', 'updated_at'].map(
    (field) =>
      [
        `${field} without a zone`,
        'add.time-zones',
        memories('add', (memory) => ({ ...memory, [field]: String(memory[field]).replace('Z', '') })),
      ] as const,
  ),
  ['created_at missing', 'add.created_at', memories('add', without('created_at'))],
  [
    'created_at as a number',
    'add.created_at',
    memories('add', (memory) => ({ ...memory, created_at: Date.parse(String(memory.created_at)) })),
  ],
  [
    'updated_at before created_at',
    'add.updated_at',
    memories('add', (memory) => ({ ...memory, updated_at: '2001-01-01T00:00:00Z' })),
  ],
  [
    'a confidence nobody gave',
    'add.optional',
    asking('add', ({ body }) => {
      body.confidence ??= 1;
    }),
  ],
  ['a status of its own', 'add.status', memories('add', (memory) => ({ ...memory, status: 'ready' }))],
  [
    'embedding_model as an object',
    'add.embedding_model',
    memories('add', (memory) => ({ ...memory, embedding_model: {} })),
  ],
  ['GET without tags', 'get.memory', memories('get', without('tags'))],
  [
    'an unknown id answers 200 and null',
    'get.unknown',
    answer('get', (response) => (response.ok ? response : again(response, null, { status: 200 }))),
  ],
  [
    '404 as text',
    'get.unknown',
    answer(
      'get',
      async (response) =>
        new Response(await response.text(), { status: response.status, headers: { 'content-type': 'text/plain' } }),
    ),
  ],
  ['an envelope without code', 'errors.envelope', error((given) => ({ error: without('code')(given) }))],
  ['an envelope without type', 'errors.envelope', error((given) => ({ error: without('type')(given) }))],
  ['an error without an envelope', 'errors.envelope', error((given) => given)],
  ['an envelope with a second key', 'errors.envelope', error((given) => ({ error: given, status: 404 }))],
  ['request_id as a number', 'errors.envelope', error((given) => ({ error: { ...given, request_id: 7 } }))],
  ['422 instead of 400', 'add.required', status('add', 400, 422)],
  [
    'a text as a number of confidence',
    'add.wrong-confidence',
    asking('add', ({ body }) => {
      if (body.confidence === 1.5) body.confidence = 1;
    }),
  ],
  [
    'any source.type',
    'add.wrong-source',
    asking('add', ({ body }) => {
      if (isRecord(body.source)) delete body.source.type;
    }),
  ],
  [
    'adds what it rejects',
    'add.wrong-valid_to',
    (send) => async (path, init, as) => {
      const response = await send(path, init, as);
      if (response.status === 400)
        await send(path, { ...init, body: JSON.stringify({ ...askedBy(path, init).body, valid_to: null }) }, as);
      return response;
    },
  ],
  ['500 for malformed JSON', 'add.malformed', status('add', 400, 500)],
  ['413 missing', 'add.too-large', status('add', 413, 400)],
  [
    'unknown fields rejected',
    'add.unknown-field',
    answer('add', (response, { body }) =>
      'field_of_a_later_version' in body
        ? again(response, { error: { code: 'invalid_request', type: 'invalid', message: 'x' } }, { status: 400 })
        : response,
    ),
  ],
  [
    'a longer content than declared taken',
    'add.max_content_length',
    (send) => features({ max_content_length: 50 })(send),
  ],
  ['a list without items', 'list.page', body('list', ({ items }) => items)],
  ['a list of memories without created_at', 'list.page', memories('list', without('created_at'))],
  ['an empty page with a cursor', 'list.empty', body('list', (page) => ({ ...page, next_cursor: 'more' }))],
  [
    'a list of everybody',
    'list.user_id-required',
    answer('list', (response) => (response.ok ? response : again(response, { items: [] }, { status: 200 }))),
  ],
  [
    'user_id regardless of case',
    'list.user_id',
    asking('list', ({ url }) => url.searchParams.set('user_id', String(url.searchParams.get('user_id')).toLowerCase())),
  ],
  ['tag ignored', 'list.tag', ignoring('list', 'tag')],
  ['limit ignored', 'list.limit', ignoring('list', 'limit')],
  [
    'a default of 20 with a missing cursor',
    'list.limit',
    body('list', (page) => ({ items: (page.items as []).slice(0, 20), next_cursor: null })),
  ],
  [
    'a limit of 501 taken as 500',
    'list.limit-wrong',
    asking('list', ({ url }) => {
      if (url.searchParams.get('limit') === '501') url.searchParams.set('limit', '500');
    }),
  ],
  ['a cursor that repeats', 'list.pagination', ignoring('list', 'cursor')],
  [
    'the last memory of a page missing',
    'list.pagination',
    body('list', (page) => ({ ...page, items: page.next_cursor ? (page.items as []).slice(0, -1) : page.items })),
  ],
  [
    'a cursor that is an offset',
    'list.cursor-stable',
    (send) => async (path, init, as) => {
      const asked = askedBy(path, init);
      if (!isAt('list', asked)) return send(path, init, as);
      const { searchParams } = asked.url;
      const [offset, limit] = [Number(searchParams.get('cursor') ?? 0), Number(searchParams.get('limit') ?? 50)];
      const { items } = (await (
        await send(`/memories?user_id=${searchParams.get('user_id')}&limit=500`, init, as)
      ).json()) as { items: unknown[] };
      const next_cursor = offset + limit < items.length ? `${offset + limit}` : null;
      return Response.json({ items: items.slice(offset, offset + limit), next_cursor });
    },
  ],
  [
    'the filter lost on the second page',
    'list.cursor-filter',
    (send) => async (path, init, as) => {
      const { url } = askedBy(path, init);
      if (!url.searchParams.has('cursor')) return send(path, init, as);
      return send(`/memories?user_id=${url.searchParams.get('user_id')}`, init, as);
    },
  ],
  ['a wrong cursor taken as none', 'list.cursor-wrong', ignoring('list', 'cursor')],
  ['since ignored', 'list.time', ignoring('list', 'since')],
  [
    'until exclusive',
    'list.time',
    asking('list', ({ url }) => {
      const until = url.searchParams.get('until');
      if (until) url.searchParams.set('until', new Date(Date.parse(until) - 1).toISOString());
    }),
  ],
  ['a wrong time ignored', 'list.time-wrong', ignoring('list', 'since', 'until')],
  ['a PATCH that drops fields', 'update.content', memories('update', without('tags'))],
  ['a PATCH that answers its own body', 'update.content', body('update', (_, { body }) => body)],
  [
    'tags merged',
    'update.tags',
    body('update', (memory) => ({ ...memory, tags: ['a', 'b', ...(memory.tags as string[])] })),
  ],
  [
    'an empty list of tags ignored',
    'update.tags-empty',
    asking('update', ({ body }) => {
      if (Array.isArray(body.tags) && body.tags.length === 0) delete body.tags;
    }),
  ],
  ['confidence not changed', 'update.confidence', ignoring('update', 'confidence')],
  ['scope not changed', 'update.scope', ignoring('update', 'scope')],
  [
    'valid_to not removed by null',
    'update.valid_to-null',
    asking('update', ({ body }) => {
      if (body.valid_to === null) delete body.valid_to;
    }),
  ],
  [
    'valid_to without its time',
    'update.valid_to',
    memories('update', (memory) => ({ ...memory, valid_to: (memory.valid_to as string | null)?.slice(0, 10) })),
  ],
  ['supersedes not changed', 'update.supersedes', ignoring('update', 'supersedes')],
  [
    'updated_at stays',
    'update.updated_at',
    memories('update', (memory) => ({ ...memory, updated_at: memory.created_at })),
  ],
  ['a PATCH of an unknown id creates it', 'update.unknown', status('update', 404, 200)],
  [
    'half of a wrong PATCH done',
    'update.wrong',
    (send) => async (path, init, as) => {
      const response = await send(path, init, as);
      if (init.method === 'PATCH' && response.status === 400)
        await send(path, { ...init, body: JSON.stringify({ content: 'must not appear' }) }, as);
      return response;
    },
  ],
  ['a malformed PATCH answers 200', 'update.malformed', status('update', 400, 200)],
  ['search finds the old text', 'update.search', ignoring('update', 'content')],
  ['lists keep the old tags', 'update.list', ignoring('update', 'tags')],
  ['deleted with 200', 'delete.gone', status('delete', 204, 200)],
  ['a delete that leaves the memory readable', 'delete.gone', undead('get')],
  ['a delete that leaves the memory in lists', 'delete.list', undead('list')],
  ['a delete that leaves the memory in search', 'delete.search', undead('search')],
  ['a second delete answers 204', 'delete.unknown', status('delete', 404, 204)],
  [
    'supersedes deletes',
    'supersede.history',
    (send) => async (path, init, as) => {
      const { body } = askedBy(path, init);
      if (init.method === 'PATCH' && Array.isArray(body.supersedes))
        await send(`/memories/${body.supersedes[0]}`, { method: 'DELETE' }, as);
      return send(path, init, as);
    },
  ],
  ['search without results', 'search.results', body('search', ({ results }) => ({ items: results }))],
  ['search with ids only', 'search.results', memories('search', ({ id }) => ({ id }))],
  [
    'search never empty',
    'search.empty',
    hits((found) => (found.length > 0 ? found : [{ memory: { id: 'x' }, score: 0 }])),
  ],
  ['search without order', 'search.order', hits((found) => found.toReversed())],
  ['scores in percent', 'search.order', hits((found) => found.map((hit) => ({ ...hit, score: hit.score * 100 })))],
  [
    'inverted score',
    'search.ranking',
    hits((found) => found.map((hit) => ({ ...hit, score: 1 - hit.score })).toReversed()),
  ],
  [
    'search of everybody',
    'search.user_id',
    (send) => async (path, init, as) => {
      const asked = askedBy(path, init);
      const response = await send(path, init, as);
      if (!isAt('search', asked) || !response.ok) return response;
      const other = String(asked.url.searchParams.get('user_id')).replace(/\d+$/, (n) => `${Number(n) + 1}`);
      asked.url.searchParams.set('user_id', other);
      const more = (await (await send(asked.url.pathname + asked.url.search, init, as)).json()) as { results: [] };
      return again(response, { results: [...((await response.json()) as { results: [] }).results, ...more.results] });
    },
  ],
  ['search without q', 'search.required', status('search', 400, 200)],
  [
    'an operator in a query fails',
    'search.any-text',
    answer('search', (response, { url }) =>
      url.searchParams.get('q')?.includes('|') ? again(response, { error: {} }, { status: 500 }) : response,
    ),
  ],
  ['limit of search ignored', 'search.limit', ignoring('search', 'limit')],
  [
    'a default of 5',
    'search.limit',
    asking('search', ({ url }) => {
      if (!url.searchParams.has('limit')) url.searchParams.set('limit', '5');
    }),
  ],
  [
    'a limit of 101 taken as 100',
    'search.limit-wrong',
    asking('search', ({ url }) => {
      if (url.searchParams.get('limit') === '101') url.searchParams.set('limit', '100');
    }),
  ],
  ['min_score ignored', 'search.min_score', ignoring('search', 'min_score')],
  ['a wrong min_score ignored', 'search.min_score-wrong', ignoring('search', 'min_score')],
  [
    'scope pattern as a prefix',
    'scopes.glob',
    asking('list', ({ url }) => {
      const scope = url.searchParams.get('scope');
      if (scope) url.searchParams.set('scope', scope.replace('/*', '*'));
    }),
  ],
  [
    'a scope without wildcards as a prefix',
    'scopes.exact',
    asking('list', ({ url }) => {
      const scope = url.searchParams.get('scope');
      if (scope) url.searchParams.set('scope', `${scope}*`);
    }),
  ],
  [
    'unscoped memories hidden',
    'scopes.unfiltered',
    asking('list', ({ url }) => {
      if (!url.searchParams.has('scope')) url.searchParams.set('scope', '*');
    }),
  ],
  ['scope prefix ignored', 'scopes.prefix', ignoring('search', 'scope')],
  [
    'scope filtered after the limit',
    'scopes.rare',
    (send) => async (path, init, as) => {
      const asked = askedBy(path, init);
      const prefix = asked.url.searchParams.get('scope');
      if (!isAt('search', asked) || prefix === null) return send(path, init, as);
      asked.url.searchParams.delete('scope');
      const response = await send(asked.url.pathname + asked.url.search, init, as);
      const { results } = (await response.json()) as { results: { memory: { scope: string | null } }[] };
      return again(response, { results: results.filter(({ memory }) => memory.scope?.startsWith(prefix)) });
    },
  ],
  [
    'pages of a scope end early',
    'scopes.pages',
    body('list', (page, { url }) => (url.searchParams.has('scope') ? { ...page, next_cursor: null } : page)),
  ],
  [
    'tag ignored beside a scope',
    'scopes.tag',
    asking('list', ({ url }) => {
      if (url.searchParams.has('scope')) url.searchParams.delete('tag');
    }),
  ],
  [
    'scopes leaked as tags',
    'scopes.no-tags',
    memories('get', (memory) => ({
      ...memory,
      tags: memory.scope ? [...(memory.tags as []), `scope:${memory.scope}`] : memory.tags,
    })),
  ],
  [
    'scopes found as tags',
    'scopes.not-by-tag',
    asking('list', ({ url }) => {
      const tag = url.searchParams.get('tag');
      if (tag === null) return;
      url.searchParams.delete('tag');
      url.searchParams.set('scope', tag);
    }),
  ],
  ['filters keep the old scope', 'scopes.update', ignoring('update', 'scope')],
  [
    'capabilities behind a key',
    'grants.open',
    (send) => (path, init, as) =>
      path === '/capabilities' && as !== 'key' ? send('/memories', init, as) : send(path, init, as),
  ],
  [
    'an invalid key taken as none needed',
    'grants.wrong-key',
    (send) => (path, init, as) => send(path, init, as === 'wrong key' ? 'key' : as),
  ],
  [
    'lists without a key',
    'grants.missing-key',
    (send) => (path, init, as) => send(path, init, path.startsWith('/memories?') ? 'key' : as),
  ],
  [
    '401 for a missing permission',
    'grants.scope',
    answer('any', (response) =>
      response.status === 403
        ? again(response, { error: { code: 'unauthorized', type: 'auth', message: 'x' } }, { status: 401 })
        : response,
    ),
  ],
  [
    'grants not applied to reading',
    'grants.scope',
    (send) => (path, init, as) => send(path, init, as === 'narrow' && (init.method ?? 'GET') === 'GET' ? 'key' : as),
  ],
  ['an audit log that is empty', 'audit.recorded', body('audit', () => ({ entries: [] }))],
  ['a context without text', 'context.answers', body('context', ({ citations }) => ({ citations }))],
  ['a context that exceeds its budget', 'context.budget', ignoring('context', 'token_budget')],
  ...(['source', 'confidence', 'valid_from', 'valid_to'] as const).map(
    (field) => [`dropped ${field}`, `add.${field}-stored`, ignoring('add', field)] as const,
  ),
  ...(['tags', 'scope', 'valid_from', 'supersedes'] as const).map(
    (field) => [`any ${field}`, `add.wrong-${field}`, ignoring('add', field)] as const,
  ),
  ...(['content', 'user_id'] as const).map((field) => {
    const asText = asking('add', (asked) => {
      asked.body[field] = JSON.stringify(asked.body[field]);
    });
    return [`any ${field}`, `add.wrong-${field}`, asText] as const;
  }),
  ...(['valid_from', 'valid_to'] as const).map((field) => {
    const another = memories('get', (memory) => ({ ...memory, [field]: memory[field] && '2001-01-01T00:00:00Z' }));
    return [`another ${field}`, `add.${field}`, another] as const;
  }),
];
