import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type ExportedMemory, InvalidRequestError } from '../../clients/typescript/src/index.ts';
import { createCopy } from '../../src/move/copy.ts';
import type { GatewayStore } from '../../src/move/store.ts';

const MINUTE_MS = 60_000;
const INVALID = {
  code: 'invalid_request',
  type: 'invalid',
  status: 400,
  requestId: undefined,
  retryAfter: undefined,
  provider: undefined,
} as const;
const memories = (count: number): ExportedMemory[] =>
  Array.from({ length: count }, (_, n) => ({ id: `${n}`, user_id: 'ana', content: `${n}` }) as ExportedMemory);

/** Copies pages in a time of its own; each request takes one of the delays. Returns when how many memories were sent. */
async function copied(
  perMinute: number,
  count: number,
  { concurrency = 4, delays = [0], rejects = (_: readonly ExportedMemory[]): boolean => false } = {},
) {
  let time = 0;
  const sent: { readonly at: number; readonly count: number }[] = [];
  const clock = {
    now: () => time,
    sleep: async (ms: number) => {
      time += ms + (delays[sent.length % delays.length] as number);
    },
  };
  const client = {
    import: async (some: readonly ExportedMemory[]) => {
      sent.push({ at: time, count: some.length });
      if (rejects(some)) throw new InvalidRequestError('no', INVALID);
      return { results: some.map(() => ({ outcome: 'stored' })) };
    },
  };
  const shown: number[] = [];
  const copy = createCopy({ client } as unknown as GatewayStore, {
    ...{ onConflict: 'skip', concurrency, perMinute, clock, signal: new AbortController().signal },
    stored: ({ stored }) => shown.push(stored),
  });
  await copy.page(memories(count));
  return { sent, shown, copy };
}

it('[Decision 43] no minute has more memories than asked for, however late a request is', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 20_000 })),
      fc.integer({ min: 1, max: 32 }),
      fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 5 }),
      async (perMinute, concurrency, delays) => {
        const { sent } = await copied(perMinute, Math.min(1_000, 3 * perMinute), { concurrency, delays });
        for (const { at } of sent) {
          const within = sent.filter((other) => other.at >= at && other.at < at + MINUTE_MS);
          expect(within.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(perMinute);
        }
      },
    ),
    { numRuns: 50 },
  );
});

it('[Decision 55] counts the versions that the source leaves out, and sends no such field', async () => {
  const sent: object[] = [];
  const client = {
    import: async (some: readonly ExportedMemory[]) => {
      sent.push(...some);
      return { results: some.map(() => ({ outcome: 'stored' })) };
    },
  };
  const copy = createCopy({ client } as unknown as GatewayStore, {
    ...{ onConflict: 'skip', concurrency: 1, perMinute: undefined, signal: new AbortController().signal },
    stored: () => {},
  });
  await copy.page(memories(2).map((one) => ({ ...one, versions_left_out: 3 })));
  expect(copy.counts.versions_left_out).toBe(6);
  expect(sent).toEqual(memories(2));
});

it('[Decision 43] 302 memories at 100 a minute are sent evenly from the beginning, and each request is shown', async () => {
  const { sent, shown, copy } = await copied(100, 302);
  expect(copy.counts.stored).toBe(302);
  expect(sent.slice(0, 3)).toEqual([0, 1_200, 2_400].map((at) => ({ at, count: 2 })));
  expect(new Set(sent.map(({ count }) => count))).toEqual(new Set([2]));
  expect(sent.at(-1)?.at).toBe(150 * 1_200);
  expect(shown).toEqual(sent.map((_, i) => 2 * (i + 1)));
});

it('[Decision 43] a request that the target rejects is sent again in halves, so that one memory fails alone', async () => {
  const { copy } = await copied(1_000_000, 100, {
    concurrency: 1,
    rejects: (some) => some.some(({ id }) => id === '42'),
  });
  expect(copy.counts).toMatchObject({ stored: 99, rejections: 1, rejected: [{ id: '42', message: 'no' }] });
});
