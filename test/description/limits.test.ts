import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPEN } from '../../src/core/principal.ts';
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
  judgeOf,
  type Schema,
} from './document.ts';
import { edgesOf } from './edges.ts';

describe('the limits told are the limits kept', () => {
  let subject: Subject;
  let client: Client;
  let document: Document;
  let judge: Judge;
  let close: () => Promise<void>;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
    // Room for a query of the longest length allowed, which the default size of a body would refuse first.
    const log = recordingLog();
    const { gate, trail } = gateOn(subject.provider, log);
    close = trail.close;
    const app = createApp({ gate, authenticator: OPEN, log, ...APP_LIMITS, max_request_bytes: 8_388_608 });
    client = clientOf(async (path, init) => app.request(path, init, {}));
    document = await fetchDocument(client);
    judge = await judgeOf(document, { closed: false });
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

  /** Sends every edge of every field through `send`; answers how many were tried. */
  const tryEdges = async (
    fields: Readonly<Record<string, Schema>>,
    send: (field: string, value: unknown) => Promise<Reply>,
  ): Promise<number> => {
    let tried = 0;
    for (const [field, schema] of Object.entries(fields)) {
      const { within, beyond } = edgesOf(schema);
      tried += within.length + beyond.length;
      for (const value of within) expect((await send(field, value)).status, told(field, value)).toBeLessThan(300);
      for (const value of beyond) {
        const reply = await send(field, value);
        expect(reply.status, told(field, value)).toBe(400);
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
    it(`in the query of ${operationId}`, async () => {
      const { path, parameters } = endpoint(operationId);
      const inQuery = parameters.filter((parameter) => parameter.in === 'query');
      // A query string has no null; there it means to leave the parameter out.
      const schemas = Object.fromEntries(
        inQuery.map(({ name, required, schema }) => [
          name,
          { ...schema, type: [schema.type, ...(required ? [] : ['null'])].flat() as string[] },
        ]),
      );
      const tried = await tryEdges(schemas, (field, value) =>
        client.ask(path, { ...required, [field]: value === null ? undefined : String(value) } as Query),
      );
      expect(tried).toBeGreaterThanOrEqual(least);
    });
  }

  for (const [operationId, schemaName, required, least] of [
    ['addMemory', 'NewMemory', { content: 'x', user_id: 'u' }, 30],
    ['updateMemory', 'MemoryPatch', {}, 20],
    ['buildContext', 'ContextRequest', { query: 'x', user_id: 'u' }, 12],
  ] as const) {
    it(`in the body of ${operationId}`, async () => {
      const { id } = await client.add({ content: 'x', user_id: 'u' });
      const { method, path } = endpoint(operationId);
      const { properties: fields = {} } = document.components.schemas[schemaName] as Schema;
      const send = (body: Fields) => client.tell(method, path.replace('{id}', id), { ...required, ...body });
      let tried = await tryEdges(fields, (field, value) => send({ [field]: value }));
      tried += await tryEdges(fields.source?.properties ?? {}, (field, value) => send({ source: { [field]: value } }));
      expect(tried).toBeGreaterThanOrEqual(least);
    });

    it(`and a body of ${operationId} is accepted exactly when its schema accepts it`, async () => {
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
      expect(answers.size, 'some are accepted, some refused').toBeGreaterThan(1);
    });
  }

  it('a default is what the gateway takes when nothing is given', async () => {
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

  it('a request id of the form told is taken over, any other replaced', async () => {
    const { schema } = document.components.parameters.RequestId as { schema: Schema };
    for (const id of ['a', 'A.z_9-', 'i'.repeat(64), 'i'.repeat(65), 'a b', 'ü', 'a/b']) {
      const { headers } = await client.ask('/healthz', {}, { 'x-request-id': id });
      const taken = new RegExp(schema.pattern as string).test(id);
      expect(headers.get('x-request-id') === id, id).toBe(taken);
    }
  });

  it('[Decision 20] an idempotency key of the form told is taken, any other refused', async () => {
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

const told = (field: string, value: unknown): string => `${field}: ${JSON.stringify(value)?.slice(0, 100)}`;

const ODD_BODIES: readonly (Fields | readonly unknown[])[] = [
  {},
  [],
  { content: 7 },
  { content: ' \u00a0\t' },
  { user_id: 'u', unknown: { any: 'thing' } },
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
