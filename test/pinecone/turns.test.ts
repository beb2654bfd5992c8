import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { connect } from '../../providers/pinecone/client/client.ts';
import { createConcurrencyLimit } from '../../providers/pinecone/client/retry.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call, callBy } from '../support/requests.ts';

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

  it('[Decision 29] rejects more when the queue is full', async () => {
    const { run } = createConcurrencyLimit(1, 1);
    const { opened, open } = gate();
    const [first, second] = [run(never, () => opened), run(never, async () => 'second')];
    const refused = run(never, async () => 'third');
    await expect(refused).rejects.toMatchObject({ code: 'rate_limited', provider: 'pinecone', retryAfter: 1 });
    open();
    await first;
    expect(await second).toBe('second');
    expect(await run(never, async () => 'fourth')).toBe('fourth');
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

describe('requests to Pinecone', () => {
  let server: Pinecone;
  beforeEach(async () => {
    server = await startPinecone({ dimension: 1 });
  });
  afterEach(() => server.close());

  it('[Decision 29] wait for a slot, are rejected when the queue is full, and leave it when their call ends', async () => {
    const to = { api_key: 'key', index_host: server.url, timeout_ms: 600_000 };
    const { fetch } = connect({ ...to, concurrency: 1, max_waiting: 1 });
    await server.fail({ kind: 'hang', times: 0 });
    await server.resetCalls();
    const [working, waiting] = [new AbortController(), new AbortController()];
    const aborted = new OmpError('invalid_request', 'aborted');
    const asked = (signal: AbortSignal) => fetch('n', ['a'], callBy({}, { signal })).catch((error: unknown) => error);
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
