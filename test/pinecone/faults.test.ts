import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Call } from '#contract';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { type Fault, type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { call, callBy } from '../support/requests.ts';

const namespace = 'n';
/** Of a service whose deadlines pass when a test says so. */
const HELD_MS = 3_599_999;
let server: Pinecone;
let patient: Service;
let hasty: Service;

beforeAll(async () => {
  server = await startPinecone({ dimension: 1 });
  const to = { api_key: 'key', index_host: server.url };
  patient = connect({ ...to, timeout_ms: 600_000 });
  hasty = connect({ ...to, timeout_ms: HELD_MS });
  await patient.upsert(namespace, record('there'), call);
  await server.resetCalls();
});
afterEach(async () => {
  await server.clearFaults();
  await server.resetCalls();
});
afterAll(() => server.close());

const record = (id: string) => ({ id, values: Float32Array.of(1), metadata: { user_id: 'u' } });
const filter = { user_id: 'u' };

type Send = (service: Service, by?: Call) => Promise<unknown>;
const REPEATABLE = {
  delete: (to, by = call) => to.remove(namespace, ['gone'], by),
  fetch: (to, by = call) => to.fetch(namespace, ['there'], by),
  query: (to, by = call) => to.query(namespace, { vector: [1], topK: 1, filter, includeMetadata: true }, by),
  list: (to, by = call) => to.list(namespace, { prefix: '', limit: 9 }, by),
  fetch_by_metadata: (to, by = call) => to.fetchByMetadata(namespace, { filter, limit: 9 }, by),
  stats: (to, by = call) => to.stats(by),
} satisfies Record<string, Send>;
const ONCE = {
  update: (to, by = call) => to.update(namespace, { id: 'there', metadata: { content: 'x' } }, by),
  upsert: (to, by = call) => to.upsert(namespace, record('there'), by),
} satisfies Record<string, Send>;

/** How often each operation is sent, and the code each ends with, when all are asked at once. */
async function outcomes(requests: Readonly<Record<string, Send>>, service: Service) {
  const made = Object.entries(requests).map(async ([operation, send]) => {
    const code = await send(service).then(
      () => 'ok',
      (error) => error.code ?? error,
    );
    return [operation, code] as const;
  });
  const ended = await Promise.all(made);
  const calls = await server.calls();
  const sent = (name: string) => calls.filter(({ operation }) => operation === name).length;
  return Object.fromEntries(ended.map(([operation, code]) => [operation, `${code} after ${sent(operation)}`]));
}
const each = (requests: object, outcome: string) =>
  Object.fromEntries(Object.keys(requests).map((operation) => [operation, outcome]));

const FAULTS: readonly [Fault, string, number, number][] = [
  [{ kind: '429' }, 'rate_limited', 3, 3],
  [{ kind: '429', retryAfter: '0' }, 'rate_limited', 3, 3],
  [{ kind: '429', retryAfter: '30' }, 'rate_limited', 1, 1],
  [{ kind: '429', retryAfter: 'nonsense' }, 'rate_limited', 3, 3],
  [{ kind: '500' }, 'provider_error', 3, 3],
  [{ kind: '503' }, 'provider_error', 3, 3],
  [{ kind: '503', retryAfter: '30' }, 'provider_error', 1, 1],
  [{ kind: '400' }, 'provider_error', 1, 1],
  [{ kind: '401' }, 'provider_error', 1, 1],
  [{ kind: '403-text' }, 'provider_error', 1, 1],
  [{ kind: 'reset' }, 'provider_error', 3, 1],
  [{ kind: 'reset-after' }, 'provider_error', 3, 1],
  [{ kind: 'garbage' }, 'provider_error', 3, 1],
  [{ kind: 'empty' }, 'provider_error', 3, 1],
];

describe('a fault that lasts', () => {
  it.each(FAULTS)('%j becomes %s after %i attempts of what may be repeated, %i of the rest', async (...row) => {
    const [fault, code, repeatable, once] = row;
    await server.fail({ ...fault, times: 0 });
    expect(await outcomes(REPEATABLE, patient)).toEqual(each(REPEATABLE, `${code} after ${repeatable}`));
    await server.resetCalls();
    expect(await outcomes(ONCE, patient)).toEqual(each(ONCE, `${code} after ${once}`));
    await server.clearFaults();
    await server.resetCalls();
    expect(await outcomes(REPEATABLE, patient)).toEqual(each(REPEATABLE, 'ok after 1'));
  });

  it('404 becomes provider_error, but for a request that the index may not know', async () => {
    await server.fail({ kind: '404', times: 0 });
    const { fetch_by_metadata, ...others } = REPEATABLE;
    expect(await outcomes({ ...others, update: ONCE.update }, patient)).toEqual(
      each({ ...others, update: 0 }, 'provider_error after 1'),
    );
    expect(await fetch_by_metadata(patient)).toBeUndefined();
  });

  it('without any answer ends at the deadline, and is met twice at most', async () => {
    const deadlines = holdTimers(HELD_MS);
    await server.fail({ kind: 'hang', times: 0 });
    const called = (times: number) => expect.poll(async () => (await server.calls()).length).toBe(times);
    const repeated = outcomes(REPEATABLE, hasty);
    const { length } = Object.keys(REPEATABLE);
    for (const attempt of [1, 2]) {
      await called(attempt * length);
      deadlines.pass();
    }
    expect(await repeated).toEqual(each(REPEATABLE, 'provider_error after 2'));
    await server.resetCalls();
    const once = outcomes(ONCE, hasty);
    await called(Object.keys(ONCE).length);
    deadlines.pass();
    expect(await once).toEqual(each(ONCE, 'provider_error after 1'));
    await server.clearFaults();
    expect(await REPEATABLE.query(patient)).toMatchObject({ matches: [{ metadata: filter }] });
  });

  it('[SPEC Errors rate_limited] tells how long to wait where the service does', async () => {
    await server.fail({ kind: '429', retryAfter: '30' });
    await expect(REPEATABLE.query(patient)).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 30 });
    await server.fail({ kind: '429', retryAfter: new Date(Date.now() + 3_600_000).toUTCString() });
    await expect(REPEATABLE.query(patient)).rejects.toMatchObject({ retryAfter: expect.closeTo(3_600, -3) });
    await server.fail({ kind: '429', times: 3 });
    await expect(REPEATABLE.query(patient)).rejects.toMatchObject({ code: 'rate_limited', retryAfter: undefined });
  });
});

describe('a fault that passes', () => {
  it.each(['429', '500', '503', 'reset', 'reset-after', 'garbage', 'empty'] as const)(
    '%s is not noticed',
    async (kind) => {
      for (const operation of Object.keys(REPEATABLE) as (keyof typeof REPEATABLE)[]) {
        await server.fail({ operation, kind, times: 2 });
      }
      expect(await outcomes(REPEATABLE, patient)).toEqual(each(REPEATABLE, 'ok after 3'));
    },
  );

  it('is not noticed by a change either, once it was answered', async () => {
    await server.fail({ operation: 'update', kind: '503', times: 2 });
    await server.fail({ operation: 'upsert', kind: '429', retryAfter: '1' });
    expect(await outcomes(ONCE, patient)).toEqual({ update: 'ok after 3', upsert: 'ok after 2' });
  });

  it('is not noticed when the first attempt is late', async () => {
    const deadlines = holdTimers(HELD_MS);
    await server.fail({ operation: 'list', kind: 'hang' });
    const listed = REPEATABLE.list(hasty);
    await expect.poll(() => server.calls()).toHaveLength(1);
    deadlines.pass();
    expect(await listed).toMatchObject({ ids: expect.arrayContaining(['there']) });
  });

  it('leaves a change without an answer as it was carried out, or not', async () => {
    const change = (content: string) => patient.update(namespace, { id: 'there', metadata: { content } }, call);
    const kept = async () => (await server.records(namespace)).there?.metadata?.content;
    await change('first');
    await server.fail({ kind: 'reset' });
    await expect(change('second')).rejects.toMatchObject({ code: 'provider_error' });
    expect(await kept()).toBe('first');
    await server.fail({ kind: 'reset-after' });
    await expect(change('third')).rejects.toMatchObject({ code: 'provider_error' });
    expect(await kept()).toBe('third');
  });

  it('slow is waited for within the deadline', async () => {
    await server.fail({ kind: 'slow', operation: 'query' });
    const slow = REPEATABLE.query(patient);
    await expect.poll(() => server.calls()).toHaveLength(1);
    await server.clearFaults();
    expect(await slow).toMatchObject({ matches: [{ metadata: filter }] });
    expect(await server.calls()).toHaveLength(1);
  });
});

describe('a client that goes', () => {
  const gone = new Error('the client is gone');

  it.each(Object.entries({ ...REPEATABLE, ...ONCE }))(
    'ends %s with its own reason, and nothing is repeated',
    async (_, send) => {
      const client = new AbortController();
      await server.fail({ kind: 'hang', times: 0 });
      const sent = send(patient, callBy({}, { signal: client.signal }));
      sent.catch(() => {});
      await expect.poll(() => server.calls()).toHaveLength(1);
      client.abort(gone);
      await expect(sent).rejects.toBe(gone);
      await sleep(150);
      expect(await server.calls()).toHaveLength(1);
    },
  );

  it('before anything was sent costs no request', async () => {
    for (const send of Object.values({ ...REPEATABLE, ...ONCE })) {
      await expect(send(patient, callBy({}, { signal: AbortSignal.abort(gone) }))).rejects.toBe(gone);
    }
    expect(await server.calls()).toEqual([]);
  });

  it('during a pause between attempts ends it', async () => {
    const client = new AbortController();
    await server.fail({ kind: '429', retryAfter: '1', times: 0 });
    const sent = REPEATABLE.query(patient, callBy({}, { signal: client.signal }));
    sent.catch(() => {});
    await expect.poll(() => server.calls()).toMatchObject([{ status: 429 }]);
    client.abort(gone);
    await expect(sent).rejects.toBe(gone);
    expect(await server.calls()).toHaveLength(1);
  });

  it('takes nobody else along', async () => {
    const clients = Array.from({ length: 20 }, () => new AbortController());
    await server.fail({ operation: 'fetch', kind: 'slow', times: 0 });
    const sent = clients.map(({ signal }) => REPEATABLE.fetch(patient, callBy({}, { signal })));
    const settled = Promise.allSettled(sent);
    await expect.poll(() => server.calls()).toHaveLength(20);
    for (const [at, client] of clients.entries()) if (at % 2 === 0) client.abort(gone);
    await server.clearFaults();
    expect((await settled).map(({ status }) => status)).toEqual(
      clients.map((_, at) => (at % 2 === 0 ? 'rejected' : 'fulfilled')),
    );
  });
});
