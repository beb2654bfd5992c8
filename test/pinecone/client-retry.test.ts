import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Call, OmpError } from '#contract';
import { connect, type Service } from '../../providers/pinecone/client/client.ts';
import { Failure, failureOf } from '../../providers/pinecone/client/pinecone-errors.ts';
import { createConcurrencyLimit, pauseAfter, withRetries } from '../../providers/pinecone/client/retry.ts';
import { callOf, gate } from '../embedding/observed-embedder.ts';
import { type Fault, type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { call } from '../support/requests.ts';

describe('retries', () => {
  const never = new AbortController().signal;

  /** Number of attempts after such failures. */
  async function attempts(failure: () => unknown, idempotent: boolean): Promise<number> {
    let made = 0;
    const work = () => {
      made++;
      return Promise.reject(failure());
    };
    await expect(withRetries(work, { idempotent, signal: never })).rejects.toEqual(failure());
    return made;
  }

  describe('retries', () => {
    it.each([
      ['unreachable', 3, 3],
      ['insecure', 1, 1],
    ] as const)('%s: %i attempts if idempotent, otherwise %i', async (kind, idempotent, other) => {
      expect(await attempts(() => new Failure(kind, 'x'), true)).toBe(idempotent);
      expect(await attempts(() => new Failure(kind, 'x'), false)).toBe(other);
    });

    it('do not follow other errors', async () => {
      expect(await attempts(() => new TypeError('x'), true)).toBe(1);
    });
  });

  describe('the pause', () => {
    const pauses = (failure: Failure, made: number) =>
      Array.from({ length: 500 }, () => pauseAfter(failure, made, true) as number);

    it.each([
      [1, 100],
      [2, 200],
    ])('after attempt %i has a random length up to %i ms', (made, longest) => {
      const some = pauses(new Failure('server-error', 'x'), made);
      expect(Math.min(...some)).toBeGreaterThanOrEqual(0);
      expect(Math.min(...some)).toBeLessThan(longest / 5);
      expect(Math.max(...some)).toBeLessThan(longest);
      expect(Math.max(...some)).toBeGreaterThan((longest * 4) / 5);
    });

    it('adds what Retry-After says', () => {
      const some = pauses(new Failure('rate-limited', 'x', { status: 429, retryAfter: 1 }), 1);
      expect(Math.min(...some)).toBeGreaterThanOrEqual(1_000);
      expect(Math.max(...some)).toBeLessThan(1_100);
    });

    it.each(['rate-limited', 'server-error'] as const)(
      'of %s is not taken if Retry-After is longer than a second',
      (kind) => {
        expect(pauseAfter(new Failure(kind, 'x', { retryAfter: 2 }), 1, true)).toBeUndefined();
      },
    );
  });

  it('an aborted signal ends a pause at once, with its reason', async () => {
    const client = new AbortController();
    let [made, paused] = [0, false];
    const work = () => {
      made++;
      setImmediate(() => {
        setImmediate(() => {
          paused = true;
        });
        client.abort('gone');
      });
      return Promise.reject(new Failure('rate-limited', 'x', { retryAfter: 1 }));
    };
    await expect(withRetries(work, { idempotent: true, signal: client.signal })).rejects.toBe('gone');
    expect({ made, paused }).toEqual({ made: 1, paused: false });
  });

  describe('Retry-After', () => {
    const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString();
    const read = (value: string | null) => {
      const headers = new Headers(value === null ? [] : [['retry-after', value]]);
      const answer = Object.defineProperty(new Response(null, { status: 429, headers }), 'url', {
        value: 'http://h/x',
      });
      return failureOf(answer, '').retryAfter;
    };

    it.each([
      ['0', 0],
      ['7', 7],
      ['86400', 86_400],
      [null, undefined],
      ['', undefined],
      [' ', undefined],
      ['-1', undefined],
      ['1.5', undefined],
      ['0x10', undefined],
      ['1e3', undefined],
      ['soon', undefined],
      ['abc 5', undefined],
      ['86401', undefined],
      ['9'.repeat(400), undefined],
      ['Mon, 99 Nov 2026 10:00:00 GMT', undefined],
      ['2026-11-21T10:00:00Z', undefined],
    ])('%j is %s seconds', (value, seconds) => {
      expect(read(value)).toBe(seconds);
    });

    it('may be a date', () => {
      expect(read(inSeconds(3_600))).toEqual(expect.closeTo(3_600, -3));
      expect(read(inSeconds(-30))).toBe(0);
      expect(read(inSeconds(200_000))).toBeUndefined();
    });
  });
});

describe('the concurrency limit of requests', () => {
  const never = new AbortController().signal;

  describe('the concurrency limit', () => {
    it('runs work in order and frees a slot when the work ends or fails', async () => {
      const { run, queueLength } = createConcurrencyLimit(2, 10);
      const begun: number[] = [];
      const gates = Array.from({ length: 5 }, gate);
      const ended = gates.map(({ opened }, i) =>
        run(never, async () => {
          begun.push(i);
          await opened;
          if (i % 2 === 0) throw new Error(`${i}`);
          return i;
        }).catch((error: Error) => error.message),
      );
      await turn();
      expect(begun).toEqual([0, 1]);
      expect(queueLength()).toBe(3);
      gates[1]?.open();
      await turn();
      expect(begun).toEqual([0, 1, 2]);
      for (const { open } of gates) open();
      expect(await Promise.all(ended)).toEqual(['0', 1, '2', 3, '4']);
      expect(begun).toEqual([0, 1, 2, 3, 4]);
    });

    it('is never exceeded and loses no slot, whatever is aborted when', async () => {
      const request = fc.record({ aborts: fc.boolean(), works: fc.integer({ min: 0, max: 3 }) });
      const sizes = fc.integer({ min: 1, max: 4 });
      await fc.assert(
        fc.asyncProperty(sizes, sizes, fc.array(request, { maxLength: 30 }), async (slots, queueLimit, requests) => {
          const { run, queueLength } = createConcurrencyLimit(slots, queueLimit);
          let working = 0;
          let most = 0;
          const ends = requests.map(async ({ aborts, works }) => {
            const aborting = new AbortController();
            const aborted = new Error('aborted');
            const work = async () => {
              most = Math.max(most, ++working);
              for (let i = 0; i < works; i++) await turn();
              working--;
              return 'worked';
            };
            const ended = run(aborting.signal, work).catch((error: unknown) => error);
            if (aborts) setImmediate(() => aborting.abort(aborted));
            const end = await ended;
            return end === aborted ? 'aborted' : end instanceof OmpError ? end.code : end;
          });
          const counted = await Promise.all(ends);
          expect(most).toBeLessThanOrEqual(slots);
          expect(counted.filter((end) => !['worked', 'aborted', 'rate_limited'].includes(end as string))).toEqual([]);
          // Nothing runs: every slot is free again.
          expect({ working, queued: queueLength() }).toEqual({ working: 0, queued: 0 });
          const again = Array.from({ length: slots + queueLimit }, () => run(never, async () => 'worked'));
          expect(new Set(await Promise.all(again))).toEqual(new Set(['worked']));
        }),
      );
    });
  });

  it('[Decision 29] requests to Pinecone wait for a slot, are rejected when the queue is full, and leave it when their call ends', async () => {
    const server = await startPinecone({ dimension: 1 });
    onTestFinished(server.close);
    const to = { api_key: 'key', index_host: server.url, timeout_ms: 600_000 };
    const { fetch } = connect({ ...to, concurrency: 1, max_waiting: 1 });
    await server.fail({ kind: 'hang', times: 0 });
    await server.resetCalls();
    const [working, waiting] = [new AbortController(), new AbortController()];
    const aborted = new OmpError('invalid_request', 'aborted');
    const asked = (signal: AbortSignal) => fetch('n', ['a'], callOf(signal)).catch((error: unknown) => error);
    const [first, second] = [asked(working.signal), asked(waiting.signal)];
    await expect(fetch('n', ['a'], call)).rejects.toMatchObject({ code: 'rate_limited', provider: 'pinecone' });
    waiting.abort(aborted);
    expect(await second).toBe(aborted);
    while ((await server.calls()).length === 0) await turn();
    await server.clearFaults();
    // Takes the slot in the queue that became free.
    const third = fetch('n', ['a'], call);
    working.abort(aborted);
    expect(await first).toBe(aborted);
    expect(await third).toEqual(new Map());
    expect(await server.calls()).toHaveLength(2);
  });
});

describe('faults of the service', () => {
  const namespace = 'n';
  /** Of a service whose deadlines pass when a test says so. */
  const HELD_MS = 3_599_999;
  let server: Pinecone;
  let patient: Service;
  let hasty: Service;

  beforeAll(async () => {
    server = await startPinecone({ dimension: 1 });
    const to = { api_key: 'pcsk_hunter2', index_host: server.url };
    patient = connect({ ...to, timeout_ms: 600_000 });
    hasty = connect({ ...to, timeout_ms: HELD_MS });
    await patient.upsert(namespace, [record('hunter2')], call);
    await server.resetCalls();
  });
  afterEach(async () => {
    await server.clearFaults();
    await server.resetCalls();
  });
  afterAll(() => server.close());

  const record = (id: string) => ({ id, values: Float32Array.of(1), metadata: { user_id: 'hunter2' } });
  const filter = { user_id: 'hunter2' };

  type Send = (service: Service, by?: Call) => Promise<unknown>;
  const REPEATABLE = {
    delete: (to, by = call) => to.remove(namespace, ['gone'], by),
    fetch: (to, by = call) => to.fetch(namespace, ['hunter2'], by),
    query: (to, by = call) => to.query(namespace, { vector: [1], topK: 1, filter, includeMetadata: true }, by),
    list: (to, by = call) => to.list(namespace, { prefix: '', limit: 9 }, by),
    fetch_by_metadata: (to, by = call) => to.fetchByMetadata(namespace, { filter, limit: 9 }, by),
    stats: (to, by = call) => to.stats(by),
  } satisfies Record<string, Send>;
  const ONCE = {
    update: (to, by = call) => to.update(namespace, { id: 'hunter2', metadata: { content: 'x' } }, by),
    upsert: (to, by = call) => to.upsert(namespace, [record('hunter2')], by),
  } satisfies Record<string, Send>;

  /** How often each operation is sent, and the code each ends with, when all are asked at once. */
  async function outcomes(requests: Readonly<Record<string, Send>>, service: Service) {
    const made = Object.entries(requests).map(async ([operation, send]) => {
      const code = await send(service).then(
        () => 'ok',
        (error) => {
          expect(JSON.stringify(pino.stdSerializers.err(error))).not.toMatch(/hunter2|127\.0\.0\.1/);
          return error.code ?? error;
        },
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
  });

  describe('a fault that passes', () => {
    it('is not noticed by a change either, once it was answered', async () => {
      await server.fail({ operation: 'update', kind: '503', times: 2 });
      await server.fail({ operation: 'upsert', kind: '429', retryAfter: '0' });
      expect(await outcomes(ONCE, patient)).toEqual({ update: 'ok after 3', upsert: 'ok after 2' });
    });

    it('is not noticed when the first attempt is late', async () => {
      const deadlines = holdTimers(HELD_MS);
      await server.fail({ operation: 'list', kind: 'hang' });
      const listed = REPEATABLE.list(hasty);
      await expect.poll(() => server.calls()).toHaveLength(1);
      deadlines.pass();
      expect(await listed).toMatchObject({ ids: expect.arrayContaining(['hunter2']) });
    });
  });

  describe('a client that disconnects', () => {
    const gone = new Error('the client is gone');

    it.each(Object.entries({ ...REPEATABLE, ...ONCE }))(
      'ends %s with its own reason, and nothing is repeated',
      async (_, send) => {
        const client = new AbortController();
        await server.fail({ kind: 'hang', times: 0 });
        const sent = send(patient, callOf(client.signal));
        sent.catch(() => {});
        await expect.poll(() => server.calls()).toHaveLength(1);
        client.abort(gone);
        await expect(sent).rejects.toBe(gone);
        expect(await server.calls()).toHaveLength(1);
      },
    );

    it('before anything was sent costs no request', async () => {
      for (const send of Object.values({ ...REPEATABLE, ...ONCE })) {
        await expect(send(patient, callOf(AbortSignal.abort(gone)))).rejects.toBe(gone);
      }
      expect(await server.calls()).toEqual([]);
    });
  });
});
