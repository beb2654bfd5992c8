import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { connect } from '../../providers/pinecone/connect.ts';
import { createTurns } from '../../providers/pinecone/turns.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call, callBy } from '../support/requests.ts';

const never = new AbortController().signal;

describe('turns', () => {
  it('are taken in order, so many at once, and are over when the work is, however it ends', async () => {
    const { take: inTurn, waiting } = createTurns(2, 10);
    const begun: number[] = [];
    const gates = Array.from({ length: 5 }, gate);
    const ended = gates.map(({ opened }, i) =>
      inTurn(never, async () => {
        begun.push(i);
        await opened;
        if (i % 2 === 0) throw new Error(`${i}`);
        return i;
      }).catch((error: Error) => error.message),
    );
    await turn();
    expect(begun).toEqual([0, 1]);
    expect(waiting()).toBe(3);
    gates[1]?.open();
    await turn();
    expect(begun).toEqual([0, 1, 2]);
    for (const { open } of gates) open();
    expect(await Promise.all(ended)).toEqual(['0', 1, '2', 3, '4']);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  it('[Decision 29] are refused to whoever comes when as many wait as may', async () => {
    const { take: inTurn } = createTurns(1, 1);
    const { opened, open } = gate();
    const [first, second] = [inTurn(never, () => opened), inTurn(never, async () => 'second')];
    const refused = inTurn(never, async () => 'third');
    await expect(refused).rejects.toMatchObject({ code: 'rate_limited', provider: 'pinecone', retryAfter: 1 });
    open();
    await first;
    expect(await second).toBe('second');
    expect(await inTurn(never, async () => 'fourth')).toBe('fourth');
  });

  it('are never more than allowed, and none is lost, whoever leaves when', async () => {
    const visitor = fc.record({ leaves: fc.boolean(), works: fc.integer({ min: 0, max: 3 }) });
    const sizes = fc.integer({ min: 1, max: 4 });
    await fc.assert(
      fc.asyncProperty(sizes, sizes, fc.array(visitor, { maxLength: 30 }), async (atOnce, mostWaiting, visitors) => {
        const { take: inTurn, waiting } = createTurns(atOnce, mostWaiting);
        let working = 0;
        let most = 0;
        const ends = visitors.map(async ({ leaves, works }) => {
          const leaving = new AbortController();
          const gone = new Error('gone');
          const work = async () => {
            most = Math.max(most, ++working);
            for (let i = 0; i < works; i++) await turn();
            working--;
            return 'worked';
          };
          const ended = inTurn(leaving.signal, work).catch((error: unknown) => error);
          if (leaves) setImmediate(() => leaving.abort(gone));
          const end = await ended;
          return end === gone ? 'left' : end instanceof OmpError ? end.code : end;
        });
        const counted = await Promise.all(ends);
        expect(most).toBeLessThanOrEqual(atOnce);
        expect(counted.filter((end) => !['worked', 'left', 'rate_limited'].includes(end as string))).toEqual([]);
        // Everybody has gone: every place is free again.
        expect({ working, waiting: waiting() }).toEqual({ working: 0, waiting: 0 });
        const again = Array.from({ length: atOnce + mostWaiting }, () => inTurn(never, async () => 'worked'));
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

  it('[Decision 29] wait for their turn, are refused beyond that, and go when their caller does', async () => {
    const to = { api_key: 'key', index_host: server.url, timeout_ms: 600_000 };
    const { fetch } = connect({ ...to, concurrency: 1, max_waiting: 1 });
    await server.fail({ kind: 'hang', times: 0 });
    await server.resetCalls();
    const [working, waiting] = [new AbortController(), new AbortController()];
    const gone = new OmpError('invalid_request', 'gone');
    const asked = (signal: AbortSignal) => fetch('n', ['a'], callBy({}, { signal })).catch((error: unknown) => error);
    const [first, second] = [asked(working.signal), asked(waiting.signal)];
    await expect(fetch('n', ['a'], call)).rejects.toMatchObject({ code: 'rate_limited', provider: 'pinecone' });
    waiting.abort(gone);
    expect(await second).toBe(gone);
    while ((await server.calls()).length === 0) await turn();
    await server.clearFaults();
    // Takes the place of the one that left.
    const third = fetch('n', ['a'], call);
    working.abort(gone);
    expect(await first).toBe(gone);
    expect(await third).toEqual(new Map());
    expect(await server.calls()).toHaveLength(2);
  });
});
