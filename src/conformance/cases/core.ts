import { type Case, check, idsOf, instant, isRecord, type Need, record, Skip, same, UNKNOWN_ID } from '../kit.ts';
import { ERRORS, MAX_BODY_BYTES, STATUSES, VERBS } from '../protocol.ts';

const isCount = (value: unknown): boolean => value === null || (Number.isInteger(value) && Number(value) > 0);
const DAY_MS = 86_400_000;

/** The document that everything else is gated by, and the probe. */
export const CAPABILITIES: readonly Case[] = [
  {
    id: 'capabilities.document',
    clauses: ['GET /capabilities', 'Capabilities omp_version', 'Capabilities provider', 'Versioning 2', 'Service json'],
    title: 'answers 200 with omp_version and provider, as JSON',
    readOnly: true,
    async run({ ask, json }) {
      const { omp_version, provider } = await json<Record<string, unknown>>(ask('/capabilities'), 200);
      check(typeof omp_version === 'string' && /^\d+\.\d+$/.test(omp_version), 'omp_version must be <major>.<minor>');
      check(typeof provider === 'string' && provider !== '', 'provider must be a name');
    },
  },
  {
    id: 'capabilities.verbs',
    clauses: ['Capabilities verbs', 'Service verbs', 'Service capabilities'],
    title: 'verbs are of the closed list, each once',
    readOnly: true,
    async run({ ask, json }) {
      const { verbs } = await json<{ verbs: unknown[] }>(ask('/capabilities'), 200);
      check(Array.isArray(verbs), 'verbs must be a list');
      same(
        verbs.filter((verb) => !VERBS.some((one) => one === verb)),
        [],
        'unknown verbs',
      );
      same(new Set(verbs).size, verbs.length, 'the number of different verbs');
    },
  },
  {
    id: 'capabilities.features',
    clauses: [
      'Capabilities features',
      ...['vector_search', 'keyword_search', 'graph_queries', 'temporal', 'scopes', 'max_content_length'].map(
        (feature) => `Capabilities features.${feature}`,
      ),
      'Capabilities features.supports_audit',
      'Capabilities features.supports_supersession',
    ],
    title: 'features that are declared have the types and values of the specification',
    readOnly: true,
    async run({ ask, json }) {
      const { features } = await json<{ features: Record<string, unknown> }>(ask('/capabilities'), 200);
      check(isRecord(features), 'features must be an object');
      const flags = [
        'vector_search',
        'keyword_search',
        'graph_queries',
        'temporal',
        'supports_audit',
        'supports_supersession',
      ];
      for (const flag of flags) {
        check(['boolean', 'undefined'].includes(typeof features[flag]), `features.${flag} must be a boolean`);
      }
      check(
        [undefined, 'native', 'tags', 'none'].includes(features.scopes as string),
        'features.scopes must be native, tags or none',
      );
      check(isCount(features.max_content_length ?? null), 'features.max_content_length must be a whole number or null');
    },
  },
  {
    id: 'capabilities.limits',
    clauses: [
      'Capabilities limits',
      'Capabilities limits.rate_limit_per_minute',
      'Capabilities limits.max_search_results',
    ],
    title: 'limits are whole numbers or null',
    readOnly: true,
    async run({ ask, json }) {
      const { limits = null } = await json<{ limits?: unknown }>(ask('/capabilities'), 200);
      if (limits === null) return;
      check(isRecord(limits), 'limits must be an object');
      for (const name of ['rate_limit_per_minute', 'max_search_results']) {
        check(isCount(limits[name] ?? null), `limits.${name} must be a whole number or null`);
      }
    },
  },
  {
    id: 'capabilities.search-agrees',
    clauses: ['GET /memories/search requires'],
    title: 'the verb search is declared exactly with vector_search or keyword_search',
    readOnly: true,
    async run({ capabilities: { verbs, features } }) {
      same(
        verbs.includes('search'),
        features.vector_search === true || features.keyword_search === true,
        'the verb search',
      );
    },
  },
  {
    id: 'capabilities.audit-agrees',
    clauses: ['Capabilities features.supports_audit'],
    title: 'the verb audit is declared exactly with supports_audit',
    readOnly: true,
    async run({ capabilities: { verbs, features } }) {
      same(verbs.includes('audit'), features.supports_audit === true, 'the verb audit');
    },
  },
  {
    id: 'capabilities.undeclared',
    clauses: ['Errors unsupported_capability', 'GET /memories/search fallback'],
    title: 'verbs that are not declared answer unsupported_capability',
    readOnly: true,
    async run({ ask, tell, refused, path, user, capabilities }) {
      const user_id = user();
      const requests = {
        update: () => tell('PATCH', path(UNKNOWN_ID), { content: 'x' }),
        delete: () => tell('DELETE', path(UNKNOWN_ID)),
        list: () => ask('/memories', { user_id }),
        search: () => ask('/memories/search', { user_id, q: 'tea' }),
      };
      const undeclared = Object.entries(requests).filter(([verb]) => !capabilities.verbs.includes(verb));
      if (undeclared.length === 0) throw new Skip('all of these verbs are declared');
      for (const [, send] of undeclared) await refused(send(), 'unsupported_capability');
    },
  },
  {
    id: 'health.ok',
    clauses: ['GET /healthz', 'Health status', 'Health provider'],
    title: 'answers 200, ok and the provider',
    readOnly: true,
    async run({ ask, json }) {
      const health = await json<Record<string, unknown>>(ask('/healthz'), 200);
      same(health.status, 'ok', 'status');
      const { provider } = await json<Record<string, unknown>>(ask('/capabilities'), 200);
      same(health.provider, provider, 'the provider, as in /capabilities,');
    },
  },
];

const ROUND_TRIP_VALUES: readonly (readonly [field: string, need: Need | undefined, values: readonly unknown[]])[] = [
  [
    'content',
    undefined,
    [
      ...['  spaces around\t\n', 'line\r\nbreak\u2028and\u2029more', 'é is not e\u0301', 'ا ل ع ر ب ي ة 記録 हिन्दी'],
      ...['👩‍👩‍👧‍👦 𝒳 \u{10FFFF} \uFEFF \uFFFD', '"quotes" \\ back\\u0000slash \'; drop table memories; -- $1 %s {}'],
    ],
  ],
  ['tags', 'tags', [['zebra', 'Apfel', 'apfel', 'a,b', '{"x":1}', "it's", '記録', '😀'], ['one']]],
  ['confidence', 'confidence', [0, 1, 0.5, 0.25]],
  ['valid_from', 'valid_from', ['2024-03-01T01:00:00Z', '1999-12-31T23:59:59Z']],
  ['valid_to', 'valid_to', ['2030-01-01T00:00:00Z', '1999-12-31T23:59:59Z']],
  [
    'source',
    'source',
    [
      { app: 'editor', type: 'explicit', ref: 'session-7' },
      { app: 'editor' },
      { app: 'editor', ref: null },
      ...['extracted', 'explicit', 'imported'].map((type) => ({ type })),
    ],
  ],
  ['scope', 'scopes', ['coding', 'coding/preferences', 'a b/ü']],
  ['supersedes', 'supersession', [['mem_2', 'mem_of_another_store']]],
];

const roundTrips = ROUND_TRIP_VALUES.map(([field, need, values]): Case => {
  const parts = field === 'source' ? ['app', 'type', 'ref'].map((part) => `Memory source.${part}`) : [];
  const feature = field === 'supersedes' ? ['Capabilities features.supports_supersession'] : [];
  return {
    id: `add.${field}`,
    clauses: [`Memory ${field}`, `POST /memories ${field}`, ...parts, ...feature],
    title: `${field} comes back as it was given`,
    needs: need === undefined ? ['get'] : ['get', need],
    async run({ add, get, user }) {
      for (const value of values) {
        const added = await add({ user_id: user(), [field]: value });
        const expected = record({ [field]: value })[field];
        same(record(added)[field], expected, field);
        same(record(await get(added.id))[field], expected, `${field} of GET`);
      }
    },
  };
});

/** Optional fields that a provider may leave out, but should say so. */
const notDropped = (['tags', 'source', 'confidence', 'valid_from', 'valid_to'] as const).map(
  (field): Case => ({
    id: `add.${field}-stored`,
    clauses: [`POST /memories ${field}`],
    title: `${field} is stored, or rejected as unsupported_capability`,
    should: true,
    async run({ tell, user, refused, json }) {
      const value = {
        tags: ['t'],
        source: { app: 'editor' },
        confidence: 0.5,
        valid_from: '2024-01-01',
        valid_to: '2034-01-01',
      }[field];
      const answer = await tell('POST', '/memories', { content: 'x', user_id: user(), [field]: value });
      if (answer.status !== 201) return refused(Promise.resolve(answer), 'unsupported_capability');
      const memory = await json<Record<string, unknown>>(Promise.resolve(answer), 201);
      check(record({ [field]: memory[field] })[field] !== undefined, `${field} is dropped without a word`);
    },
  }),
);

const WRONG: Readonly<Record<string, readonly unknown[]>> = {
  content: [5, {}, ['a']],
  user_id: [5, {}, ['a']],
  tags: ['a', 5, [5]],
  source: ['editor', 5, { type: 'guessed' }, { app: 5 }],
  confidence: ['high', -0.5, 1.5, {}],
  valid_from: ['soon', '2024-13-01', {}],
  valid_to: ['soon', '2024-13-01', {}],
  scope: [5, {}],
  supersedes: [5, [5]],
};
const wrong = Object.entries(WRONG).map(
  ([field, values]): Case => ({
    id: `add.wrong-${field}`,
    clauses: ['Errors invalid_request', `POST /memories ${field}`],
    title: `a wrong ${field} answers 400 and adds nothing`,
    async run({ tell, refused, user, list, capabilities }) {
      const user_id = user();
      for (const value of values) {
        const body = { content: 'x', user_id, [field]: value };
        // A field that the provider does not have may be refused as such.
        await refused(tell('POST', '/memories', body), 'invalid_request', 'unsupported_capability');
      }
      if (capabilities.verbs.includes('list')) same((await list({ user_id })).items, [], 'the list');
    },
  }),
);

/** Adding and reading one memory; the shape of errors. */
export const CORE: readonly Case[] = [
  {
    id: 'add.created',
    clauses: ['POST /memories', 'Service no wrapper', 'POST /memories user_id', 'Memory user_id'],
    title: 'answers 201 with the memory itself',
    async run({ tell, json, user }) {
      const fields = { content: 'likes tea', user_id: user() };
      const memory = await json<Record<string, unknown>>(tell('POST', '/memories', fields), 201);
      check(typeof memory.id === 'string' && memory.id !== '', 'id must be a text');
      same({ content: memory.content, user_id: memory.user_id }, fields, 'the memory');
    },
  },
  {
    id: 'add.id',
    clauses: ['Memory id'],
    title: 'every memory has its own id, also with the same content',
    async run({ addAll, user }) {
      same(new Set(idsOf(await addAll(user(), 10, { content: 'the same' }))).size, 10, 'the number of different ids');
    },
  },
  ...roundTrips,
  ...notDropped,
  {
    id: 'add.time-zones',
    clauses: ['Memory created_at', 'Memory updated_at'],
    title: 'times state their zone',
    should: true,
    async run({ add, user }) {
      const memory = await add({ user_id: user() });
      for (const field of ['created_at', 'updated_at']) {
        const zoned = /(?:Z|[+-]\d\d:?\d\d)$/.test(String(memory[field] ?? 'Z'));
        check(zoned, `${field} has no zone, so clients elsewhere read another moment: ${memory[field]}`);
      }
    },
  },
  {
    id: 'add.created_at',
    clauses: ['Memory created_at'],
    title: 'created_at is the time of creation, and stays',
    needs: ['get', 'created_at'],
    async run({ add, get, user }) {
      const { created_at, id } = await add({ user_id: user() });
      check(
        Math.abs(instant(created_at, 'created_at') - Date.now()) < DAY_MS,
        `created_at must be now, is ${created_at}`,
      );
      same((await get(id)).created_at, created_at, 'created_at of GET');
    },
  },
  {
    id: 'add.updated_at',
    clauses: ['Memory updated_at'],
    title: 'updated_at, if there is one, is not before created_at',
    async run({ add, user }) {
      const { created_at, updated_at } = await add({ user_id: user() });
      if (updated_at == null) throw new Skip('there is no updated_at');
      check(
        instant(updated_at, 'updated_at') >= instant(created_at, 'created_at'),
        'updated_at must not be before created_at',
      );
    },
  },
  {
    id: 'add.optional',
    clauses: ['Memory optional fields', 'Memory confidence'],
    title: 'fields that were not given are absent, null or empty',
    needs: ['get'],
    async run({ add, get, user }) {
      const { id } = await add({ user_id: user() });
      const fields = Object.keys(record(await get(id)));
      const set = ['scope', 'tags', 'source', 'confidence', 'valid_from', 'valid_to', 'supersedes'];
      same(
        fields.filter((field) => set.includes(field)),
        [],
        'the fields that were not given',
      );
    },
  },
  {
    id: 'add.embedding_model',
    clauses: ['Memory embedding_model'],
    title: 'embedding_model is a name, null or absent',
    async run({ add, user }) {
      const { embedding_model = null } = await add({ user_id: user() });
      check(
        embedding_model === null || (typeof embedding_model === 'string' && embedding_model !== ''),
        'embedding_model must be a name',
      );
    },
  },
  {
    id: 'add.status',
    clauses: ['Memory status', ...['queued', 'indexing', 'done', 'failed', 'absent'].map((state) => `States ${state}`)],
    title: 'status is of the closed list or absent, and ends as done',
    needs: ['get'],
    async run({ tell, json, settled, get, user }) {
      const added = await json<{ id: string; status?: unknown }>(
        tell('POST', '/memories', { content: 'x', user_id: user() }),
        201,
      );
      check([undefined, null, ...STATUSES].includes(added.status as never), 'status must be of the closed list');
      await settled(added as never);
      check([undefined, null, 'done'].includes((await get(added.id)).status as never), 'status must become done');
    },
  },
  {
    id: 'get.memory',
    clauses: ['GET /memories/{id}'],
    title: 'answers the memory as it was created',
    needs: ['get'],
    async run({ add, get, stores, user }) {
      const more = {
        ...((await stores('tags')) && { tags: ['a'] }),
        ...((await stores('confidence')) && { confidence: 0.25 }),
      };
      const added = await add({ user_id: user(), ...more });
      same(record(await get(added.id)), record(added), 'the memory');
    },
  },
  {
    id: 'get.unknown',
    clauses: ['GET /memories/{id} unknown', 'Errors not_found', 'Service one envelope'],
    title: 'an unknown id answers 404 not_found',
    needs: ['get'],
    readOnly: true,
    async run({ ask, path, refused }) {
      for (const id of [UNKNOWN_ID, 'x', 'a b', "' or 1=1 --", '記録', 'A'.repeat(200)])
        await refused(ask(path(id)), 'not_found');
    },
  },
  {
    id: 'errors.envelope',
    clauses: [
      'Errors envelope',
      'Errors code',
      'Errors message',
      'Errors type',
      'Errors provider',
      'Errors request_id',
    ],
    title: 'the envelope has the fields of the specification, with their types',
    needs: ['get'],
    readOnly: true,
    async run({ ask, path, refused }) {
      const error = await refused(ask(path(UNKNOWN_ID)), 'not_found');
      for (const field of ['provider', 'request_id']) {
        check(error[field] == null || typeof error[field] === 'string', `error.${field} must be a text`);
      }
      same(Object.keys(ERRORS).includes(String(error.code)), true, 'whether error.code is of the closed list');
    },
  },
  {
    id: 'add.required',
    clauses: ['POST /memories content', 'POST /memories user_id', 'Errors invalid_request'],
    title: 'content and user_id are required',
    async run({ tell, refused, user }) {
      const user_id = user();
      for (const body of [
        {},
        { content: 'x' },
        { user_id },
        { content: null, user_id },
        { content: 'x', user_id: null },
      ]) {
        await refused(tell('POST', '/memories', body), 'invalid_request');
      }
    },
  },
  ...wrong,
  {
    id: 'add.malformed',
    clauses: ['Errors invalid_request', 'Service json'],
    title: 'a body that is not a JSON object answers 400',
    async run({ raw, refused }) {
      for (const body of ['{"content": "x"', 'content=x', '[]', '"x"', 'null', '']) {
        const headers = { 'content-type': 'application/json' };
        await refused(raw('/memories', { method: 'POST', headers, body }), 'invalid_request');
      }
    },
  },
  {
    id: 'add.too-large',
    clauses: ['Errors payload_too_large', 'Limits body'],
    title: 'a body of more than 1 MiB answers 413',
    async run({ tell, refused, user }) {
      await refused(
        tell('POST', '/memories', { user_id: user(), content: 'x'.repeat(MAX_BODY_BYTES) }),
        'payload_too_large',
      );
    },
  },
  {
    id: 'add.unknown-field',
    clauses: ['Versioning 3'],
    title: 'a field of a later version is ignored',
    should: true,
    async run({ add, user }) {
      await add({ user_id: user(), field_of_a_later_version: 1 });
    },
  },
  {
    id: 'add.max_content_length',
    clauses: ['Limits features.max_content_length', 'Capabilities features.max_content_length'],
    title: 'content may be as long as declared, and no longer',
    async run({ add, tell, refused, user, capabilities: { features } }) {
      const most = features.max_content_length;
      if (typeof most !== 'number' || most > 1_000_000)
        throw new Skip('no limit below the size of a request is declared');
      const content = 'x'.repeat(most);
      same((await add({ user_id: user(), content })).content, content, 'content');
      const answer = tell('POST', '/memories', { user_id: user(), content: `${content}x` });
      await refused(answer, 'invalid_request', 'payload_too_large');
    },
  },
];
