import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Memory } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { listOf } from '../support/requests.ts';
import {
  allPages,
  call,
  DIMENSION,
  idsOf,
  type Listing,
  NOON,
  openListing,
  paging,
  requestsOf,
  sorted,
} from './listing.ts';

const COUNT = 10_000;
const DAY = 24 * 3_600_000;

/**
 * How one user came to have so many, and how many lists a page takes in a process just started: mostly, at most, and the
 * last one. As measured; docs/backends/pinecone.md says so too.
 */
const SHAPES = [
  { how: 'over a year', at: (i: number) => NOON - Math.floor((i * 365 * DAY) / COUNT), mostly: 5, most: 8, last: 13 },
  {
    how: 'in ten bursts of a minute, 20 days apart',
    at: (i: number) => NOON - Math.floor(i / 1_000) * 20 * DAY - (i % 1_000) * 60,
    mostly: 8,
    most: 50,
    last: 50,
  },
  { how: 'within a minute', at: (i: number) => NOON - i * 6, mostly: 8, most: 10, last: 55 },
];

let server: Pinecone;
let listing: Listing;
beforeAll(async () => {
  server = await startPinecone({ dimension: DIMENSION });
});
beforeEach(() => {
  listing = openListing(server);
});
afterEach(async () => {
  listing.close();
  await server.lag({});
});
afterAll(() => server.close());

const filled = async (at: (i: number) => number): Promise<Memory[]> => {
  const memories = sorted(Array.from({ length: COUNT }, (_, i) => listing.memory(at(i))));
  await listing.seed(memories);
  return memories;
};

describe.each(SHAPES)('10,000 memories of one user, made $how,', ({ at, mostly, most, last }) => {
  it('[SPEC GET /memories pagination] [SPEC GET /memories cursor] take a list and a fetch a page of 50, six of each a page of 500; a process just started goes on from anywhere in a few more', async () => {
    const truth = await filled(at);
    for (const [limit, requests] of [
      [50, { list: 200, fetch: 200 }],
      // The last page looks for no more, and so fetches 500 instead of 501.
      [500, { list: 120, fetch: 119 }],
    ] as const) {
      const pages = paging(listing.restarted(), listing.user_id, { limit });
      const counts = await requestsOf(server, async () => expect(idsOf(await allPages(pages))).toEqual(idsOf(truth)));
      expect(counts).toEqual(requests);
    }

    const pageAfter = async (place: number): Promise<number> => {
      const query = listOf(listing.user_id, { after: truth[place] as Memory, limit: 51 });
      const { list = 0, fetch } = await requestsOf(server, async () =>
        expect(idsOf(await listing.restarted()(query, call))).toEqual(idsOf(truth.slice(place + 1, place + 52))),
      );
      expect(fetch).toBe(1);
      return list;
    };
    const counts: number[] = [];
    for (let place = 49; place < COUNT - 100; place += 350) counts.push(await pageAfter(place));
    counts.sort((a, b) => a - b);
    expect(counts[Math.floor(counts.length * 0.85)]).toBeLessThanOrEqual(mostly);
    expect(counts.at(-1)).toBeLessThanOrEqual(most);
    expect(await pageAfter(COUNT - 2)).toBeLessThanOrEqual(last);
  });
});

it.each([
  [50, 2],
  [500, 7],
])(
  '[Decision 2] 10,000 memories of one user, shown 40 writes late, page through in order while others come and go, %i a page in at most %i requests of each kind',
  async (limit, most) => {
    const truth = await filled((i) => NOON - Math.floor((i * 365 * DAY) / COUNT));
    await server.settle();
    await server.lag({ writes: 40 });
    const staying = new Set(idsOf(truth));
    const goneHere = new Set<string>();
    const below = randomBelow(1);
    const read: Memory[] = [];
    const pages = paging(listing.restarted(), listing.user_id, { limit });
    for (let more = true; more; ) {
      const { list = 0, fetch = 0 } = await requestsOf(server, async () => {
        const { done, value } = await pages.next();
        more = !done;
        if (!value) return;
        expect(value.filter(({ id }) => goneHere.has(id))).toEqual([]);
        read.push(...value);
      });
      expect(list).toBeLessThanOrEqual(most);
      expect(fetch).toBeLessThanOrEqual(most);

      // Between two pages, by this gateway and by another: some anywhere, some right before and right behind the place.
      const some = () =>
        [below(COUNT), read.length - below(8), read.length + below(8)]
          .map((place) => truth[place])
          .filter((memory) => memory !== undefined && staying.delete(memory.id)) as Memory[];
      for (const memory of some()) {
        await listing.remove(memory);
        goneHere.add(memory.id);
      }
      await listing.drop(some());
      await listing.add(listing.memory(NOON + read.length));
      await listing.seed([listing.memory(NOON + read.length), listing.memory(NOON - below(365) * DAY)]);
    }
    expect(new Set(idsOf(read)).size).toBe(read.length);
    expect(idsOf(read)).toEqual(idsOf(sorted(read)));
    const stayed = (memories: readonly Memory[]) => idsOf(memories.filter(({ id }) => staying.has(id)));
    expect(stayed(read)).toEqual(stayed(truth));
    expect(goneHere.size).toBeGreaterThan(10);
  },
);

/** Integers from 0 on, the same ones every time. */
function randomBelow(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % most;
  };
}
