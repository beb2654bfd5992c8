import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEmbedder } from '../../src/embedding/open.ts';
import { embeddings, embeddingsServer, failing } from '../embedding/embeddings-server.ts';
import { openStore, type TestDatabase, until } from '../postgres/store.ts';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { freshUser, recordingLog } from '../support/subject.ts';
import { type ResilientOptions, serveResilient } from './served.ts';

const NEVER_MS = 3_600_000;
/** A deadline that passes when a test says so. */
const HELD_MS = 3_599_999;

let store: TestDatabase;
let service: Awaited<ReturnType<typeof embeddingsServer>>;
beforeEach(async () => {
  [store, service] = await Promise.all([openStore(), embeddingsServer()]);
});
afterEach(async () => {
  await service.close();
  await store.close();
});

const serve = async (options: Partial<ResilientOptions> = {}, limits: { max_waiting?: number } = {}) => {
  const served = await serveResilient({
    postgres: { url: store.url, schema: store.schema, connections: 1 },
    openEmbedder: (protect) =>
      openEmbedder(
        {
          kind: 'openai',
          model: 'test-model',
          dimensions: undefined,
          base_url: service.base_url,
          api_key: '',
          timeout_ms: 600_000,
          batch_size: 1,
          cache_size: 0,
          ...limits,
        },
        recordingLog(),
        protect,
      ),
    ...options,
  });
  const user_id = freshUser();
  const { id } = await served.client.add({ user_id, content: 'kept' });
  const add = (content = 'tea') => served.client.tell('POST', '/memories', { user_id, content });
  return { ...served, user_id, id, add, states: () => Object.fromEntries(served.states()) };
};

describe('an embedding service that does not answer', () => {
  it('[Decision 28] is named by the deadline, opens its circuit breaker, and recovers after a probe', async () => {
    const deadlines = holdTimers(HELD_MS);
    const { client, id, user_id, add, states } = await serve({ request_timeout_ms: HELD_MS, probe_ms: 5 });
    const before = service.received.length;
    const ofTea = () => service.received.slice(before).filter(({ input }) => input[0] === 'tea');
    service.answer = () => {};
    for (let asked = 1; asked <= 5; asked++) {
      const reply = add();
      await until(async () => ofTea().length >= asked);
      deadlines.pass();
      const error = expectError(await reply, 'provider_error');
      expect(error).toMatchObject({ provider: 'openai', message: expect.stringMatching(/longer than this gateway/) });
    }
    await until(async () => states().openai !== 'closed');
    const refused = await add();
    expect(expectError(refused, 'provider_error').provider).toBe('openai');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(states().postgres).toBe('closed');
    // None goes on at the service for somebody who has been answered. Those after them are probes.
    const ours = ofTea();
    expect(ours).toHaveLength(5);
    await Promise.all(ours.map(({ closed }) => closed));

    expectError(await client.ask('/memories/search', { user_id, q: 'tea' }), 'provider_error');
    // What needs no embedding is served.
    expect((await client.get(id)).content).toBe('kept');
    expect((await client.update(id, { confidence: 0.5 })).confidence).toBe(0.5);
    expect((await client.ask('/healthz')).status).toBe(200);

    service.answer = embeddings(8);
    await until(async () => states().openai === 'closed');
    expect((await add()).status).toBe(201);
  });

  it('[Decision 28] gets only probes while its circuit breaker is open', async () => {
    const { add, states } = await serve({ probe_ms: NEVER_MS });
    service.answer = failing(503);
    while (states().openai === 'closed') expectError(await add(), 'provider_error');
    const { length } = service.received;
    for (let i = 0; i < 10; i++) expectError(await add(), 'provider_error');
    expect(service.received).toHaveLength(length);
  });

  it.each([
    ['refuses the text', 400, 'invalid_request'],
    ['refuses the key', 401, 'provider_error'],
    ['limits the rate', 429, 'rate_limited'],
  ] as const)('[Decision 28] but one that %s does answer', async (_, status, code) => {
    const { add, states } = await serve({ probe_ms: NEVER_MS });
    service.answer = failing(status);
    for (let i = 0; i < 10; i++) expectError(await add(), code);
    expect(states()).toEqual({ openai: 'closed', postgres: 'closed' });
  });
});

describe('too many texts', () => {
  it('[Decision 29] are rejected with 429 and Retry-After, and earlier ones succeed', async () => {
    const { add, states } = await serve({}, { max_waiting: 2 });
    const held: (() => void)[] = [];
    service.answer = (request, response) => void held.push(() => embeddings(8)(request, response));
    // Eight requests at once, of one text each, and two that wait.
    const taken = Array.from({ length: 10 }, (_, i) => add(`tea ${i}`));
    await until(async () => held.length === 8);
    const refused = await add('one more');
    expectError(refused, 'rate_limited');
    expect(refused.headers.get('retry-after')).toBe('1');
    service.answer = embeddings(8);
    for (const answer of held) answer();
    expect((await Promise.all(taken)).map(({ status }) => status)).toEqual(Array(10).fill(201));
    expect((await add('one more')).status).toBe(201);
    expect(states()).toEqual({ openai: 'closed', postgres: 'closed' });
  });
});
