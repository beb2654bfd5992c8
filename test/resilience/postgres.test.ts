import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore, type TestDatabase, until } from '../postgres/store.ts';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { freshUser } from '../support/subject.ts';
import { openBreakableWay, type Way } from './breakable-way.ts';
import { type ResilientOptions, serveResilient } from './served.ts';

const NEVER_MS = 3_600_000;
/** A deadline that passes when a test says so. */
const HELD_MS = 3_599_999;

let store: TestDatabase;
let way: Way;
beforeEach(async () => {
  store = await openStore();
  way = await openBreakableWay(store.url);
});
afterEach(() => store.close());

const serve = async (options: Partial<ResilientOptions> & { postgres?: object } = {}) => {
  const postgres = { url: way.url, schema: store.schema, connections: 1, ...options.postgres };
  const served = await serveResilient({ ...options, postgres });
  const user_id = freshUser();
  const { id } = await served.client.add({ user_id, content: 'kept' });
  const state = () => served.states().get('postgres');
  /** Asks until the breaker is open; how each was answered. */
  const askUntilOpen = async (): Promise<Reply[]> => {
    const replies: Reply[] = [];
    while (state() === 'closed') replies.push(await served.client.ask(served.client.byId(id)));
    return replies;
  };
  return { ...served, user_id, id, state, askUntilOpen };
};

describe('while Postgres is down', () => {
  it('[Decision 28] every request gets 502 with Retry-After at once, and the server gets none', async () => {
    const { client, id, user_id, askUntilOpen } = await serve({ probe_ms: NEVER_MS, retries: 0 });
    way.cut();
    for (const reply of await askUntilOpen()) expectError(reply, 'provider_error');
    const asked = way.asked();
    const replies = await Promise.all([
      ...Array.from({ length: 20 }, () => client.ask(client.byId(id))),
      client.tell('POST', '/memories', { user_id, content: 'refused' }),
      client.ask('/memories/search', { user_id, q: 'kept' }),
      client.ask('/memories', { user_id }),
      client.tell('PATCH', client.byId(id), { content: 'refused' }),
      client.tell('DELETE', client.byId(id)),
    ]);
    for (const reply of replies) {
      expect(expectError(reply, 'provider_error').provider).toBe('postgres');
      expect(reply.headers.get('retry-after')).toBe('1');
    }
    expect(way.asked()).toBe(asked);
    expect((await client.ask('/capabilities')).status).toBe(200);
  });

  it('[Decision 28] probes run in the background and close the circuit breaker without a request', async () => {
    const { client, id, state, askUntilOpen, lines } = await serve({ probe_ms: 5 });
    way.cut();
    await askUntilOpen();
    const asked = way.asked();
    await until(async () => way.asked() > asked + 2);
    expect(state()).not.toBe('closed');
    way.mend();
    await until(async () => state() === 'closed');
    expect((await client.ask('/healthz')).status).toBe(200);
    expect((await client.get(id)).content).toBe('kept');
    const about = lines.filter(({ fields }) => 'dependency' in fields);
    expect(about.map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  it('[Decision 28] deadlines of a server that accepts connections but never answers open the circuit breaker', async () => {
    const deadlines = holdTimers(HELD_MS);
    const { client, id, state } = await serve({ probe_ms: 5, request_timeout_ms: HELD_MS });
    way.block();
    const five = Promise.all(Array.from({ length: 5 }, () => client.ask(client.byId(id))));
    for (const reply of await deadlines.passUntil(five)) {
      const error = expectError(reply, 'provider_error');
      expect(error).toMatchObject({ provider: 'postgres', message: expect.stringMatching(/longer than this gateway/) });
    }
    await until(async () => state() !== 'closed');
    expect((await client.ask(client.byId(id))).headers.get('retry-after')).toBe('1');
    way.mend();
    await until(async () => state() === 'closed');
    expect((await client.get(id)).content).toBe('kept');
  });
});

describe('a server that answers', () => {
  it('[Decision 28] does not open the circuit breaker by deadlines of requests that ask for too much', async () => {
    const deadlines = holdTimers(HELD_MS);
    const postgres = { connections: 2 };
    const { client, user_id, state } = await serve({ probe_ms: NEVER_MS, request_timeout_ms: HELD_MS, postgres });
    await store.sql(`begin; lock table ${store.names.memories} in access exclusive mode`);
    for (let round = 0; round < 10; round++) {
      const reply = await deadlines.passUntil(client.ask('/memories', { user_id }));
      expectError(reply, 'provider_error');
      expect(reply.headers.get('retry-after')).toBeNull();
    }
    await store.sql('rollback');
    expect(state()).toBe('closed');
    expect((await client.ask('/memories', { user_id })).status).toBe(200);
  });

  it('[Decision 28] never opens the circuit breaker, even with errors', async () => {
    const { client, id, user_id, state } = await serve({ probe_ms: NEVER_MS });
    await store.sql(`alter table ${store.names.memories} rename column scope to elsewhere`);
    for (let i = 0; i < 10; i++) expectError(await client.ask(client.byId(id)), 'provider_error');
    expectError(await client.tell('POST', '/memories', { user_id, content: 'no' }), 'provider_error');
    expect(state()).toBe('closed');
    await store.sql(`alter table ${store.names.memories} rename column elsewhere to scope`);
    expect((await client.get(id)).content).toBe('kept');
  });

  it('[Decision 27] gets a retry of a read after a lost connection, and the request succeeds', async () => {
    const { client, id, user_id } = await serve({ postgres: { connections: 3 } });
    for (let round = 0; round < 5; round++) {
      const asked = Array.from({ length: 12 }, () => client.get(id));
      // Connections end while statements are under way; new ones can be made.
      setImmediate(way.mend);
      for (const { content } of await Promise.all(asked)) expect(content).toBe('kept');
    }
    expect((await client.list({ user_id })).items).toHaveLength(1);
  });
});

describe('too many statements', () => {
  it('[Decision 29] are rejected with 429 and Retry-After, and earlier ones succeed', async () => {
    const { client, id, state } = await serve({ postgres: { max_waiting: 3 } });
    const replies = await Promise.all(Array.from({ length: 40 }, () => client.ask(client.byId(id))));
    const refused = replies.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(40);
    for (const reply of refused) {
      expect(expectError(reply, 'rate_limited').provider).toBe('postgres');
      expect(reply.headers.get('retry-after')).toBe('1');
    }
    expect(state()).toBe('closed');
    expect((await client.get(id)).content).toBe('kept');
  });
});
