import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OmpError, type Provider } from '#contract';
import { ANONYMOUS } from '../../src/core/grants.ts';
import { NO_TELEMETRY } from '../../src/core/telemetry.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { knownCallers } from '../support/known-callers.ts';
import { type RunningServer, serverForTest } from '../support/server.ts';
import type { WireChange } from '../support/wire.ts';

const waitingIn = (server: RunningServer, count: number) => eventually(() => expect(server.followers()).toBe(count));

/** Counts the reads of the feed. */
function countingReads() {
  const counts = { reads: 0 };
  const alter = (provider: Provider): Provider => ({
    ...provider,
    changes: (query, call) => {
      counts.reads++;
      return (provider as Required<Provider>).changes(query, call);
    },
  });
  return { counts, alter };
}

const EVERY_MS = 1_000;
const FOLLOWERS = 300;

describe('waiting for changes', () => {
  it('[Decision 51] of many requests costs one read a second, and wakes those that a change concerns', async () => {
    const timers = holdTimers(EVERY_MS);
    const { counts, alter } = countingReads();
    const server = await serverForTest({ alter, max_requests: 4 * FOLLOWERS });
    const { client } = server;
    const after = (await client.changes({ after: 'now' })).next_cursor;
    counts.reads = 0;
    const ended: string[] = [];
    const polls = Array.from({ length: FOLLOWERS }, async (_, i) => {
      const { changes } = await client.changes({ after, wait: 60, user_id: `user ${i}` });
      ended.push(...changes.map(({ user_id }) => user_id));
    });
    await waitingIn(server, FOLLOWERS);
    // One for each request, and the first of the common reader.
    await eventually(() => expect(counts.reads).toBe(FOLLOWERS + 1));
    for (let second = 1; second <= 5; second++) {
      await eventually(() => expect(timers.waiting()).toBe(1));
      timers.pass();
      await eventually(() => expect(counts.reads).toBe(FOLLOWERS + 1 + second));
    }
    await client.add({ user_id: 'user 7', content: 'x' });
    await eventually(() => expect(ended).toEqual(['user 7']));
    // The common one, and that of the follower.
    expect(counts.reads).toBe(FOLLOWERS + 8);
    await server.close();
    await Promise.all(polls);
  });

  it('[Decision 51] of 200 equal requests of one caller costs a few reads, and shows another caller what it may read', async () => {
    const asked: unknown[] = [];
    const callers = knownCallers();
    const readers = [callers.admit(), callers.admit({ grants: ['read:a/*'] })];
    const server = await serverForTest({
      alter: (provider) => ({
        ...provider,
        changes: async (query, call) => {
          if (call.caller.id.startsWith('key:')) asked.push(query.within);
          return (provider as Required<Provider>).changes(query, call);
        },
      }),
      authenticator: callers.authenticator,
      max_requests: 1_000,
    });
    const after = (await server.client.changes({ after: 'now' })).next_cursor;
    const poll = async (headers?: Record<string, string>) => {
      const response = await fetch(`${server.url}/changes?after=${after}&wait=60`, headers && { headers });
      return ((await response.json()) as { changes: WireChange[] }).changes.map(({ scope }) => scope);
    };
    const all = [...Array.from({ length: 200 }, () => poll(readers[0])), poll(readers[1])];
    await waitingIn(server, 201);
    await server.client.add({ user_id: 'u', content: 'x', scope: 'b' });
    const told = await Promise.all(all.slice(0, 200));
    expect(new Set(told.flat())).toEqual(new Set(['b']));
    await server.client.add({ user_id: 'u', content: 'x', scope: 'a/b' });
    expect(await all[200]).toEqual(['a/b']);
    // One for each before it waits, and far fewer than that again after the change.
    expect(asked.filter((within) => within === null).length).toBeLessThan(250);
    expect(asked).toContainEqual(['a/*']);
  });

  it('[Decision 51] [Decision 29] miss no change that comes while an equal request reads', async () => {
    const { opened, open: answer } = gate();
    let [held, looks] = [0, 0];
    const server = await serverForTest({
      alter: (provider) => ({
        ...provider,
        changes: async (query, call) => {
          const part = await (provider as Required<Provider>).changes(query, call);
          if (call.caller.id === 'gateway') looks += part.changes.length;
          else if (query.after !== 'now' && held++ === 0) await opened;
          return part;
        },
      }),
    });
    const { client } = server;
    const after = (await client.changes({ after: 'now' })).next_cursor;
    const first = client.changes({ after, wait: 60 });
    await eventually(() => expect(held).toBe(1));
    await client.add({ user_id: 'u', content: 'x' });
    // The common reader has told it.
    await eventually(() => expect(looks).toBe(1));
    const second = client.changes({ after, wait: 1 });
    await waitingIn(server, 2);
    answer();
    expect((await second).changes).toHaveLength(1);
    expect((await first).changes).toHaveLength(1);
  });

  it('[Decision 51] an erase has a change for each 100 scopes, and a request reads one scope of each', async () => {
    const asked: unknown[] = [];
    const server = await serverForTest({
      alter: (provider) => ({
        ...provider,
        changes: async (query, call) => {
          const part = await (provider as Required<Provider>).changes(query, call);
          asked.push([query.left_scopes, part.changes.map(({ left_scopes }) => left_scopes.length)]);
          return part;
        },
      }),
    });
    const { client } = server;
    const scopes = Array.from({ length: 150 }, (_, i) => `s/${i}`);
    for (const some of [scopes.slice(0, 100), scopes.slice(100)])
      await client.batch(some.map((scope) => ({ user_id: 'u', content: 'x', scope })));
    const after = (await client.changes({ after: 'now' })).next_cursor;
    await client.erase('u');
    asked.length = 0;
    const { changes } = await client.changes({ after });
    expect(changes).toMatchObject([{ action: 'erase' }, { action: 'erase' }]);
    // The memory provider hands out what it holds.
    expect(asked).toEqual([['first', [100, 50]]]);
    await server.close();
  });

  it('[Decision 51] [Decision 29] takes no place from other requests, and has limits of its own', async () => {
    const server = await serverForTest({ max_requests: 4, max_requests_per_caller: 2 });
    const { client, url } = server;
    const going = new AbortController();
    const left = [1, 2].map(() => fetch(`${url}/changes?after=now&wait=60`, { signal: going.signal }).catch(() => {}));
    await waitingIn(server, 2);
    expectError(await client.ask('/changes', { wait: 60 }), 'rate_limited');
    for (let i = 0; i < 5; i++) expectError(await client.ask('/memories/mem_x'), 'not_found');
    going.abort();
    await Promise.all(left);
    await waitingIn(server, 0);
    await eventually(async () => expect((await client.ask('/changes')).status).toBe(200));
  });

  it('[Decision 51] has no deadline, and its time counts for nothing', async () => {
    const timers = holdTimers(30_000);
    const seconds: number[] = [];
    const telemetry = {
      ...NO_TELEMETRY,
      request: () => ({
        trace: undefined,
        end: ({ route, seconds: taken }: { route: string; seconds: number }) => {
          if (route === '/changes') seconds.push(taken);
        },
      }),
    };
    const server = await serverForTest({ request_timeout_ms: 30_000, telemetry });
    const start = performance.now();
    const waiting = server.client.changes({ after: 'now', wait: 60 });
    await waitingIn(server, 1);
    await sleep(100);
    const since = performance.now();
    timers.pass();
    timers.pass();
    await sleep(500);
    const idle = performance.now() - since;
    await server.client.add({ user_id: 'u', content: 'x' });
    expect((await waiting).changes).toHaveLength(1);
    await eventually(() => expect(seconds).toHaveLength(1));
    expect(seconds[0]).toBeLessThanOrEqual((performance.now() - start - idle) / 1_000);
  });

  it('[Decision 51] sees the changes of other gateways with the next read', async () => {
    const timers = holdTimers(EVERY_MS);
    let store: Required<Provider> | undefined;
    const server = await serverForTest({
      alter: (provider) => {
        store = provider as Required<Provider>;
        return provider;
      },
    });
    const waiting = server.client.changes({ after: 'now', wait: 60 });
    await waitingIn(server, 1);
    await store?.erase({ user_id: 'u' }, { caller: { id: 'other', app: 'other' }, requestId: 'r' } as never);
    expect((await timers.passUntil(waiting)).changes).toMatchObject([
      { action: 'erase', user_id: 'u', caller: 'other' },
    ]);
  });

  it('[Decision 51] ends when the log is another one, and outlasts a failure of the backend', async () => {
    const timers = holdTimers(EVERY_MS);
    let failure: OmpError | undefined;
    const server = await serverForTest({
      alter: (provider) => ({
        ...provider,
        changes: async (query, call) => {
          if (failure && query.after !== 'now') throw failure;
          return (provider as Required<Provider>).changes(query, call);
        },
      }),
    });
    const waiting = server.client.ask('/changes', { after: 'now', wait: 60 });
    await waitingIn(server, 1);
    failure = new OmpError('provider_error', 'down');
    for (let i = 0; i < 3; i++) {
      await eventually(() => expect(timers.waiting()).toBe(1));
      timers.pass();
    }
    expect(server.followers()).toBe(1);
    failure = new OmpError('invalid_request', 'another log', { gone: true });
    expect(await timers.passUntil(waiting)).toMatchObject({ status: 410 });
  });
});

/** Lets everybody in, but for those who send this key once it is revoked. */
function revocableKey(key: string) {
  let isRevoked = false;
  const authenticator = {
    authenticate: async (credential: string | undefined) => {
      if (credential === key && isRevoked) throw new OmpError('unauthorized', 'revoked');
      return ANONYMOUS;
    },
  };
  const revoke = () => {
    isRevoked = true;
  };
  return { authenticator, headers: { 'x-api-key': key }, revoke };
}

it.each([60, 15])('[Decision 13] a wait of %d s ends with 401 if the key was revoked meanwhile', async (wait) => {
  const timers = holdTimers(15_000);
  const { authenticator, headers, revoke } = revocableKey('a');
  const server = await serverForTest({ authenticator });
  const poll = fetch(`${server.url}/changes?after=now&wait=${wait}`, { headers });
  await waitingIn(server, 1);
  revoke();
  if (wait === 15) timers.pass();
  else await server.client.add({ user_id: 'u', content: 'x' });
  const response = await poll;
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toContain('Bearer');
  expect(await response.json()).toMatchObject({ error: { code: 'unauthorized' } });
});

describe('a stream of changes', () => {
  /** Reads events: those with data, and how many without. */
  async function openStream({ url }: RunningServer, query = '', headers: Record<string, string> = {}) {
    const going = new AbortController();
    const response = await fetch(`${url}/changes${query}`, {
      headers: { accept: 'text/event-stream', ...headers },
      signal: going.signal,
    });
    const events: { id: string; change?: WireChange }[] = [];
    let ended = false;
    const reading = (async () => {
      let text = '';
      for await (const bytes of response.body ?? []) {
        text += Buffer.from(bytes).toString();
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          const [, id = ''] = /^id: (.*)$/m.exec(block) ?? [];
          const [, data] = /^data: (.*)$/m.exec(block) ?? [];
          events.push({ id, ...(data !== undefined && { change: JSON.parse(data) as WireChange }) });
        }
      }
    })()
      .catch(() => {})
      .finally(() => {
        ended = true;
      });
    const changes = () => events.flatMap(({ change }) => (change ? [change] : []));
    return { response, events, changes, reading, ended: () => ended, leave: () => going.abort() };
  }

  it('[Decision 51] sends each change once, with its cursor as id, and goes on after Last-Event-ID', async () => {
    const server = await serverForTest();
    const { client } = server;
    const first = await client.add({ user_id: 'u', content: 'one' });
    const stream = await openStream(server);
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream');
    await eventually(() => expect(stream.changes().map(({ id }) => id)).toEqual([first.id]));
    const second = await client.add({ user_id: 'u', content: 'two' });
    await client.add({ user_id: 'v', content: 'three' });
    await eventually(() => expect(stream.changes()).toHaveLength(3));
    const { changes } = await client.changes();
    expect(stream.changes()).toEqual(changes);
    const ids = stream.events.filter(({ change }) => change).map(({ id }) => id);
    expect(ids).toEqual(changes.map(({ cursor }) => cursor));

    const other = await openStream(server, '?user_id=u', { 'last-event-id': ids[0] as string });
    await eventually(() => expect(other.changes().map(({ id }) => id)).toEqual([second.id]));
    // Past the change of another user, which this stream does not show.
    await eventually(() => expect(other.events.at(-1)?.id).toBe(ids[2]));
    stream.leave();
    other.leave();
    await waitingIn(server, 0);
  });

  it('[Decision 51] [Decision 11] from the beginning reads one part at a time with others of its caller, and leaves one audit entry', async () => {
    let [reading, most, reads] = [0, 0, 0];
    const server = await serverForTest({
      alter: (provider) => ({
        ...provider,
        changes: async (query, call) => {
          const { changes } = provider as Required<Provider>;
          if (call.caller.id === 'gateway') return changes(query, call);
          reads++;
          most = Math.max(most, ++reading);
          await new Promise((resolve) => setImmediate(resolve));
          return changes(query, call).finally(() => reading--);
        },
      }),
    });
    const { client } = server;
    for (let n = 0; n < 30; n++) await client.add({ user_id: 'u', content: `${n}` });
    const streams = await Promise.all(
      Array.from({ length: 5 }, (_, n) => openStream(server, `?user_id=u&limit=${n + 1}`)),
    );
    await eventually(() => {
      for (const stream of streams) expect(stream.changes()).toHaveLength(30);
    });
    expect(reads).toBeGreaterThan(60);
    expect(most).toBe(1);
    await client.add({ user_id: 'u', content: 'later' });
    await eventually(() => {
      for (const stream of streams) expect(stream.changes()).toHaveLength(31);
    });
    const outcomes = async () => {
      const entries = await client.audit({ user_id: 'u', limit: 500 });
      return entries.flatMap(({ action, outcome }) => (action === 'changes' ? [outcome] : []));
    };
    expect(await outcomes()).toEqual(Array(5).fill('ok'));
    // One that leaves was told nothing more.
    for (const stream of [...streams, await openStream(server, '?user_id=u&after=now')]) stream.leave();
    await waitingIn(server, 0);
    expect(await outcomes()).toEqual(Array(5).fill('ok'));
  });

  it('[Decision 51] sends a heartbeat every 15 seconds, has no deadline, and ends when the gateway stops', async () => {
    const deadlines = holdTimers(30_000);
    const timers = holdTimers(15_000);
    const server = await serverForTest({ request_timeout_ms: 30_000 });
    const stream = await openStream(server, '?after=now');
    for (let beats = 1; beats <= 3; beats++) {
      await eventually(() => expect(stream.events).toHaveLength(beats));
      await eventually(() => expect(timers.waiting()).toBe(1));
      deadlines.pass();
      timers.pass();
    }
    await waitingIn(server, 1);
    const poll = server.client.ask('/changes', { after: 'now', wait: 60 });
    await waitingIn(server, 2);
    await server.close();
    await stream.reading;
    expect(await poll).toMatchObject({ status: 200, body: { changes: [], more: false } });
  });

  it('[Decision 51] ends when its caller is admitted no more, and begins with an error as an answer', async () => {
    const { authenticator, headers, revoke } = revocableKey('a');
    const server = await serverForTest({ authenticator });
    const stream = await openStream(server, '', headers);
    await waitingIn(server, 1);
    revoke();
    await server.client.add({ user_id: 'u', content: 'x' });
    await stream.reading;
    expect(stream.changes()).toEqual([]);
    expect((await openStream(server, '', headers)).response.status).toBe(401);
    expect((await openStream(server, '?after=x')).response.status).toBe(400);
    expect((await openStream(server, '?after=0badc0de-1')).response.status).toBe(410);
  });
});
