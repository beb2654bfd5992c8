import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPEN } from '../../src/core/grants.ts';
import { createApp } from '../../src/http/app.ts';
import { type Client, clientOf, type Fields, type Query, type Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { APP_LIMITS, freshUser, gateOn, openSubject, recordingLog, type Subject } from '../support/subject.ts';
import {
  type Document,
  type Endpoint,
  endpointsOf,
  fetchDocument,
  type Judge,
  judgeDocument,
  judgeOf,
  pointerTo,
  type Schema,
} from './document.ts';

/** Files of the page at /docs, and the metrics: docs/metrics.md describes their format. */
const UNDESCRIBED = ['GET /docs/start.js', 'GET /docs/:asset', 'GET /metrics'];

describe('the OpenAPI document', () => {
  let subject: Subject;
  let document: Document;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
    document = await fetchDocument(subject.client);
  });
  afterAll(() => subject.close());

  it('matches the official schema of OpenAPI 3.1', async () => {
    const reply = await subject.client.ask('/openapi.json');
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('application/json');
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(await judgeDocument(document)).toEqual([]);
    expect(
      await judgeDocument({ ...document, paths: { memories: {} } }),
      'the schema must reject an invalid document',
    ).not.toEqual([]);
  });

  it('has the protocol, its version and this server', () => {
    expect(document.info).toMatchObject({ title: 'Open Memory Protocol gateway', version: '0.1' });
    expect(document.info.version).toBe(subject.capabilities.omp_version);
    expect(document.servers).toEqual([{ url: '.' }]);
  });

  it('uses no keyword that OpenAPI 3.1 removed', () => {
    expect(JSON.stringify(document)).not.toContain('"nullable"');
  });

  it('describes exactly the existing routes', () => {
    const routes = subject.app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path}`);
    const described = endpointsOf(document).map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect(described).toEqual([...new Set(described)]);
    expect([...described, ...UNDESCRIBED].sort()).toEqual([...new Set(routes)].sort());
  });

  it('[SPEC Authentication 3] [SPEC Authentication 4] requires a credential exactly where it has 401, and none of an open gateway', () => {
    expect(Object.keys(document.components.securitySchemes)).toEqual(['bearer', 'apiKey']);
    expect(document.security).toEqual([{ bearer: [] }, { apiKey: [] }, {}]);
    for (const { method, path, operation } of endpointsOf(document))
      expect(operation.security, `${method} ${path}`).toEqual('401' in operation.responses ? undefined : []);
  });

  it('describes every parameter and every field of a body', () => {
    for (const { method, path, parameters } of endpointsOf(document))
      for (const { name, description } of parameters) expect(description, `${method} ${path} ${name}`).toMatch(/\S/);
    for (const name of ['NewMemory', 'MemoryPatch', 'ContextRequest'])
      for (const [field, schema] of Object.entries(document.components.schemas[name]?.properties ?? {}))
        if (field !== 'source') expect(schema, `${name}.${field}`).toHaveProperty('description');
  });

  it('has examples that match its schemas', async () => {
    const judge = judgeOf(document, { closed: true });
    let seen = 0;
    const check = async (pointer: string, value: unknown) => {
      seen++;
      expect(await judge.mistakes(`${pointer}/schema`, value), `${pointer} ${JSON.stringify(value)}`).toEqual([]);
    };
    for (const { method, path, operation, parameters } of endpointsOf(document)) {
      for (const [index, parameter] of parameters.entries())
        if (parameter.example !== undefined)
          await check(pointerTo('paths', path, method.toLowerCase(), 'parameters', String(index)), parameter.example);
      const places = [
        { place: ['requestBody'], content: operation.requestBody?.content },
        ...Object.entries(operation.responses).map(([status, { content }]) => ({
          place: ['responses', status],
          content,
        })),
      ];
      for (const { place, content } of places)
        for (const [type, { example, examples = {} }] of Object.entries(content ?? {})) {
          const pointer = pointerTo('paths', path, method.toLowerCase(), ...place, 'content', type);
          if (example !== undefined) await check(pointer, example);
          for (const { value } of Object.values(examples)) await check(pointer, value);
        }
    }
    expect(seen).toBeGreaterThan(40);
    judge.close();
  });
});

describe('the documented limits', () => {
  let subject: Subject;
  let client: Client;
  let document: Document;
  let judge: Judge;
  let close: () => Promise<void>;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
    // Room for a query of maximum length, which the default limit for bodies would reject first.
    const log = recordingLog();
    const { gate, auditQueue } = gateOn(subject.provider, log);
    close = auditQueue.close;
    const app = createApp({ gate, authenticator: OPEN, log, ...APP_LIMITS, max_request_bytes: 8_388_608 });
    client = clientOf(async (path, init) => app.request(path, init, {}));
    document = await fetchDocument(client);
    judge = judgeOf(document, { closed: false });
  });
  afterAll(async () => {
    await close();
    await Promise.all([subject.close(), judge.close()]);
  });

  const endpoint = (operationId: string): Endpoint => {
    const found = endpointsOf(document).find(({ operation }) => operation.operationId === operationId);
    if (!found) throw new Error(`the description has no ${operationId}`);
    return found;
  };

  /** Sends every edge of every field; returns their number. */
  const tryEdges = async (
    fields: Readonly<Record<string, Schema>>,
    send: (field: string, value: unknown) => Promise<Reply>,
  ): Promise<number> => {
    let tried = 0;
    for (const [field, schema] of Object.entries(fields)) {
      const { within, beyond } = edgesOf(schema);
      tried += within.length + beyond.length;
      for (const value of within) expect((await send(field, value)).status, shown(field, value)).toBeLessThan(300);
      for (const value of beyond) {
        const reply = await send(field, value);
        expect(reply.status, shown(field, value)).toBe(400);
        expect(expectError(reply, 'invalid_request').message).toContain(field);
      }
    }
    return tried;
  };

  for (const [operationId, required, least] of [
    ['listMemories', { user_id: 'u' }, 15],
    ['searchMemories', { q: 'x', user_id: 'u' }, 18],
    ['readAudit', { user_id: 'u' }, 12],
  ] as const) {
    it(`hold for the query of ${operationId}`, async () => {
      const { path, parameters } = endpoint(operationId);
      const inQuery = parameters.filter((parameter) => parameter.in === 'query');
      // A query string has no null; here null omits the parameter.
      const schemas = Object.fromEntries(
        inQuery.map(({ name, required, schema }) => [
          name,
          { ...schema, type: [schema.type, ...(required ? [] : ['null'])].flat() as string[] },
        ]),
      );
      const tried = await tryEdges(schemas, (field, value) =>
        client.ask(path, {
          ...required,
          [field]: Array.isArray(value)
            ? value.map((one) => String(one ?? ''))
            : value === null
              ? undefined
              : String(value),
        } as Query),
      );
      expect(tried).toBeGreaterThanOrEqual(least);
    });
  }

  for (const [operationId, schemaName, required, least] of [
    ['addMemory', 'NewMemory', { content: 'x', user_id: 'u' }, 30],
    ['updateMemory', 'MemoryPatch', {}, 20],
    ['buildContext', 'ContextRequest', { query: 'x', user_id: 'u' }, 12],
  ] as const) {
    it(`hold for the body of ${operationId}`, async () => {
      const { id } = await client.add({ content: 'x', user_id: 'u' });
      const { method, path } = endpoint(operationId);
      const { properties: fields = {} } = document.components.schemas[schemaName] as Schema;
      const send = (body: Fields) => client.tell(method, path.replace('{id}', id), { ...required, ...body });
      let tried = await tryEdges(fields, (field, value) => send({ [field]: value }));
      tried += await tryEdges(fields.source?.properties ?? {}, (field, value) => send({ source: { [field]: value } }));
      expect(tried).toBeGreaterThanOrEqual(least);
    });

    it(`a body of ${operationId} is accepted exactly if its schema accepts it`, async () => {
      const { id } = await client.add({ content: 'x', user_id: 'u' });
      const { method, path } = endpoint(operationId);
      const answers = new Set<number>();
      for (const changes of ODD_BODIES) {
        const body = Array.isArray(changes) ? changes : { ...required, ...changes };
        const accepted = (await judge.mistakes(`/components/schemas/${schemaName}`, body)).length === 0;
        const reply = await client.tell(method, path.replace('{id}', id), body);
        expect(reply.status < 300, `${JSON.stringify(body)} ${reply.text}`).toBe(accepted);
        answers.add(reply.status);
      }
      expect(answers.size, 'some are accepted, some rejected').toBeGreaterThan(1);
    });
  }

  it('the gateway uses the documented defaults', async () => {
    const user_id = freshUser();
    const words = 'a plain sentence about trains that costs a fair number of tokens in any block of context';
    for (let i = 0; i < 60; i++) await client.add({ content: `${words} ${i}`, user_id });
    const limitOf = (operationId: string) =>
      endpoint(operationId).parameters.find(({ name }) => name === 'limit')?.schema.default;
    expect((await client.list({ user_id })).items).toHaveLength(limitOf('listMemories') as number);
    expect(await client.search({ user_id, q: 'trains' })).toHaveLength(limitOf('searchMemories') as number);
    for (let i = 0; i < 60; i++) await client.list({ user_id, limit: 1 });
    const { entries } = (await client.ask('/audit', { user_id })).body as { entries: readonly unknown[] };
    expect(entries).toHaveLength(limitOf('readAudit') as number);

    const budget = document.components.schemas.ContextRequest?.properties?.token_budget?.default as number;
    const ask = { user_id, query: 'trains' };
    const given = await client.context(ask);
    expect(given).toEqual(await client.context({ ...ask, token_budget: budget }));
    expect(given.token_count).toBeLessThan((await client.context({ ...ask, token_budget: budget + 100 })).token_count);
    expect(given.token_count).toBeGreaterThan(
      (await client.context({ ...ask, token_budget: budget - 100 })).token_count,
    );
  });

  it('a request id that matches the pattern is used, any other replaced', async () => {
    const { schema } = document.components.parameters.RequestId as { schema: Schema };
    for (const id of ['a', 'A.z_9-', 'i'.repeat(64), 'i'.repeat(65), 'a b', 'ü', 'a/b']) {
      const { headers } = await client.ask('/healthz', {}, { 'x-request-id': id });
      const taken = new RegExp(schema.pattern as string).test(id);
      expect(headers.get('x-request-id') === id, id).toBe(taken);
    }
  });

  it('[Decision 20] an idempotency key that matches the pattern is accepted, any other rejected', async () => {
    const { schema } = endpoint('addMemory').parameters.find(({ name }) => name === 'Idempotency-Key') as {
      schema: Schema;
    };
    for (const key of ['', 'k', 'a b', '~', 'k'.repeat(255), 'k'.repeat(256), 'ü', 'a\tb', 'a\u007fb']) {
      const reply = await client.tell('POST', '/memories', { content: 'x', user_id: 'u' }, { 'idempotency-key': key });
      const taken = new RegExp(schema.pattern as string).test(key);
      expect(reply.status, key).toBe(taken ? 201 : 400);
      if (!taken) expect(expectError(reply, 'invalid_request').message).toContain('Idempotency-Key');
    }
  });
});

const shown = (field: string, value: unknown): string => `${field}: ${JSON.stringify(value)?.slice(0, 100)}`;

const ODD_BODIES: readonly (Fields | readonly unknown[])[] = [
  {},
  [],
  { content: 7 },
  { content: ' \u00a0\t' },
  { user_id: 'u', unknown: { any: 'thing' } },
  { user_id: ['u', 'v'] },
  { user_id: ['u', 'u'] },
  { user_id: [] },
  { scope: 'a/b/c' },
  { scope: '/a' },
  { scope: 'a/' },
  { scope: 'a//b' },
  { scope: 'a*' },
  { scope: 'a?b' },
  { scope: 'a\u0085b' },
  { scope: Array(32).fill('s').join('/') },
  { scope: Array(33).fill('s').join('/') },
  { tags: 'one' },
  { tags: [null] },
  { tags: [] },
  { confidence: '0.5' },
  { source: { type: 'guessed' } },
  { source: { app: 5 } },
  { source: { anything: true } },
  { valid_to: null },
  { valid_to: 5 },
  { valid_to: 'tomorrow' },
  { supersedes: [''] },
  { 'x-own': { nested: [1, null] } },
  { 'x-own': null },
  { token_budget: 1.5 },
  { token_budget: '5' },
  { query: {} },
];

/** Values at the limits of a schema, and just beyond them. */
interface Edges {
  readonly within: readonly unknown[];
  readonly beyond: readonly unknown[];
}

const asList = <T>(value: T | readonly T[] | undefined): readonly T[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as readonly T[]) : [value as T];

function edgesOf(schema: Schema): Edges {
  const types = asList<string>(schema.type);
  const parts = [numbers, texts, lists, choices].map((kind) => kind(schema)).concat((schema.anyOf ?? []).map(edgesOf));
  return {
    within: [...parts.flatMap(({ within }) => within), ...(types.includes('null') ? [null] : [])],
    beyond: [...parts.flatMap(({ beyond }) => beyond), ...(types.includes('null') ? [] : [null])],
  };
}

const numbers = ({ type, minimum, maximum }: Schema): Edges => {
  const step = asList<string>(type).includes('integer') ? 1 : 0.001;
  const bounds = [minimum, maximum].filter((bound) => bound !== undefined);
  return {
    within: bounds,
    beyond: [...asList(minimum).map((least) => least - step), ...asList(maximum).map((most) => most + step)],
  };
};

/** Characters are code points, so these are astral ones; very long texts use one unit, for speed. */
const textOf = (length: number): string => (length > 2000 ? 'a' : '😀').repeat(length);

const texts = ({ minLength, maxLength, pattern, enum: choice }: Schema): Edges => {
  if (choice) return { within: [], beyond: [] };
  return {
    within: [...asList(minLength), ...asList(maxLength)].map(textOf),
    beyond: [
      ...asList(minLength).map((least) => textOf(least - 1)),
      ...asList(maxLength).map((most) => textOf(most + 1)),
      ...(pattern === undefined ? [] : ['', ' \t\n'].filter((text) => !new RegExp(pattern, 'u').test(text))),
    ],
  };
};

const lists = ({ items, maxItems }: Schema): Edges => {
  if (!items) return { within: [], beyond: [] };
  const listOf = (length: number) => Array.from({ length }, (_, index) => `item ${index}`);
  const inner = edgesOf(items);
  return {
    within: [...asList(maxItems).map(listOf), ...inner.within.map((value) => [value])],
    beyond: [...asList(maxItems).map((most) => listOf(most + 1)), ...inner.beyond.map((value) => [value])],
  };
};

const choices = ({ enum: choice }: Schema): Edges =>
  choice ? { within: choice, beyond: ['another'] } : { within: [], beyond: [] };
