import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EARLIEST_MS, listOrder, timeOf, timePart } from '../../providers/pinecone/gateway-index/ids.ts';
import { createWalk, type Stretch, type Walk } from '../../providers/pinecone/gateway-index/list-walk.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call, DIMENSION, idsOf, type Listing, NOON, openListing, requestsOf, sorted } from './listing.ts';

const RUNS = Number(process.env.OMP_TEST_RUNS ?? 40);

let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone({ dimension: DIMENSION });
});
afterAll(() => server.close());

const FIRST = timePart(Number.POSITIVE_INFINITY);
const LAST = timePart(0);

const walkOn = ({ own }: Listing): Walk => createWalk(own.service, own.namespaces);
const stretchOf = ({ userPart }: Listing, more: Partial<Stretch> = {}): Stretch => {
  const { from, to } = { from: FIRST, to: LAST, ...more };
  const has = (id: string) => timeOf(id) >= from && timeOf(id) <= to;
  return { userPart, from, to, has, resumed: false, wanted: Number.POSITIVE_INFINITY, ...more };
};
/** Everything after this id. */
const resumedAt = (listing: Listing, id: string, more: Partial<Stretch> = {}): Stretch =>
  stretchOf(listing, { from: timeOf(id), has: (other) => listOrder(id, other) < 0, resumed: true, ...more });

const taking = async (walk: AsyncIterable<string>, count = Number.POSITIVE_INFINITY): Promise<string[]> => {
  const taken: string[] = [];
  for await (const id of walk) {
    taken.push(id);
    if (taken.length >= count) break;
  }
  return taken;
};

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Times as users make them: many in one millisecond, second, minute, day or year, side by side. */
const cluster = fc
  .record({
    start: fc.integer({ min: EARLIEST_MS, max: EARLIEST_MS + 600 * DAY }),
    span: fc.constantFrom(1, 20, 1_000, MINUTE, DAY, 30 * DAY),
    count: fc.integer({ min: 1, max: 260 }),
    seed: fc.integer(),
  })
  .map(({ start, span, count, seed }) => {
    let state = seed;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      return (state >>> 0) / 2 ** 32;
    };
    return Array.from({ length: count }, () => start + Math.floor(random() * span));
  });
const times = fc.array(cluster, { minLength: 1, maxLength: 4 }).map((clusters) => clusters.flat());

describe('a walk along the list of the service', () => {
  it('[Decision 1] gives what sorting gives, from anywhere to anywhere, and goes on from any of it', async () => {
    const place = fc.tuple(fc.nat(), fc.integer({ min: -1, max: 1 }));
    const stretches = fc.array(fc.tuple(place, place, fc.nat(), fc.constantFrom(10, 51, 200)), {
      minLength: 4,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(times, stretches, async (made, asked) => {
        const listing = openListing(server);
        const truth = sorted(made.map((ms) => listing.memory(ms)));
        await listing.seed(truth);
        const walk = walkOn(listing);
        const near = ([at, off]: readonly [number, number]) => timePart((made[at % made.length] as number) + off);
        for (const [first, last, at, wanted] of asked) {
          const [from, to] = [near(first), near(last)];
          const expected = idsOf(truth).filter((id) => timeOf(id) >= from && timeOf(id) <= to);
          expect(await taking(walk(stretchOf(listing, { from, to }), call))).toEqual(expected);

          const start = at % truth.length;
          const { id } = truth[start] as { id: string };
          const page = await taking(walk(resumedAt(listing, id, { wanted }), call), wanted);
          expect(page).toEqual(idsOf(truth.slice(start + 1, start + 1 + wanted)));
          const reached = page.at(-1);
          if (reached === undefined) continue;
          const on = await taking(walk(resumedAt(listing, reached, { wanted }), call), wanted);
          expect(on).toEqual(idsOf(truth.slice(start + 1 + page.length, start + 1 + page.length + wanted)));
        }
        listing.close();
      }),
      { numRuns: RUNS },
    );
  });

  it('[Decision 1] turns the ids of one millisecond round, however many pages of the service they fill', async () => {
    const listing = openListing(server);
    const truth = sorted(Array.from({ length: 300 }, (_, i) => listing.memory(NOON - (i < 5 || i > 290 ? i : 7))));
    await listing.seed(truth);
    expect(await taking(walkOn(listing)(stretchOf(listing), call))).toEqual(idsOf(truth));
    listing.close();
  });

  it('ends, and asks for nothing more, once times pass the end of the stretch', async () => {
    const listing = openListing(server);
    const truth = sorted(Array.from({ length: 500 }, (_, i) => listing.memory(NOON - i * MINUTE)));
    await listing.seed(truth);
    const walk = walkOn(listing);
    const to = timePart(NOON - 20 * MINUTE);
    const counts = await requestsOf(server, async () =>
      expect(await taking(walk(stretchOf(listing, { to }), call))).toEqual(idsOf(truth.slice(0, 21))),
    );
    expect(counts).toEqual({ list: 1 });
    listing.close();
  });

  it('enters in the middle, carries the digits of times, and ends where nothing can follow', async () => {
    const listing = openListing(server);
    const at = (time: string, count: number) =>
      Array.from({ length: count }, (_, i) => listing.memory(2 ** 48 - 1 - Number(`0x${time}`) - i));
    const truth = idsOf(
      sorted([at('fe60fe000000', 120), at('fe60ff000000', 120), at('fe6110000000', 2), at('fe6200000000', 1)].flat()),
    );
    await listing.seed(truth.map((id) => listing.memory(NOON, { id })));
    const from = 'fe60ff000064';
    const inside = (to: string) => truth.filter((id) => timeOf(id) >= from && timeOf(id) <= to);
    // What begins with nothing, fe60ff and its second page; then fe61, fe62 to fe69 and fe6a, fe6b, older than any id.
    for (const [to, list] of [
      ['fe60ffffffff', 3],
      ['fe61ffffffff', 4],
      ['fe62ffffffff', 5],
      [LAST, 14],
    ] as const) {
      const walk = walkOn(listing)(stretchOf(listing, { from, to }), call);
      const counts = await requestsOf(server, async () => expect(await taking(walk)).toEqual(inside(to)));
      expect(counts).toEqual({ list });
    }
    expect(inside(LAST)).toHaveLength(23);
    listing.close();
  });

  it('sees nothing of users whose ids stand before and after', async () => {
    const [a, b, c] = [openListing(server), openListing(server), openListing(server)];
    const all = [a, b, c].map((listing) => [listing.memory(NOON), listing.memory(NOON - 1)]);
    for (const memories of all) await b.seed(memories);
    expect(await taking(walkOn(b)(stretchOf(b), call))).toEqual(idsOf(sorted(all[1] ?? [])));
    for (const listing of [a, b, c]) listing.close();
  });

  it('is empty where nothing was ever stored', async () => {
    const listing = openListing(server);
    const walk = walkOn(listing);
    expect(await taking(walk(stretchOf(listing), call))).toEqual([]);
    expect(await taking(walk(resumedAt(listing, listing.memory(NOON).id), call))).toEqual([]);
    listing.close();
  });
});

describe('the tokens of the service', () => {
  const filled = async () => {
    const listing = openListing(server);
    const truth = sorted(Array.from({ length: 400 }, (_, i) => listing.memory(NOON - i * DAY)));
    await listing.seed(truth);
    return { listing, truth: idsOf(truth) };
  };
  const listed = async () =>
    (await server.calls()).map(({ path }) => new URL(path, server.url).searchParams.has('paginationToken'));

  it('are passed on for the next page, which so takes one request', async () => {
    const { listing, truth } = await filled();
    const walk = walkOn(listing);
    await taking(walk(stretchOf(listing, { wanted: 51 }), call), 51);
    for (const start of [50, 100, 150]) {
      await server.resetCalls();
      const page = await taking(walk(resumedAt(listing, truth[start - 1] as string, { wanted: 51 }), call), 51);
      expect(page).toEqual(truth.slice(start, start + 51));
      expect(await listed()).toEqual([true]);
    }
    listing.close();
  });

  it('are not used at the start of a list, where new memories come in', async () => {
    const { listing, truth } = await filled();
    const walk = walkOn(listing);
    await taking(walk(stretchOf(listing), call));
    const newer = listing.memory(NOON + 1);
    await listing.seed([newer]);
    expect(await taking(walk(stretchOf(listing), call))).toEqual([newer.id, ...truth]);
    listing.close();
  });

  it('may be refused for the next page: the list is entered where it was', async () => {
    const { listing, truth } = await filled();
    const walk = walkOn(listing);
    await taking(walk(stretchOf(listing, { wanted: 51 }), call), 51);
    await server.fail({ operation: 'list', kind: '400' });
    await server.resetCalls();
    const page = await taking(walk(resumedAt(listing, truth[49] as string, { wanted: 51 }), call), 51);
    expect(page).toEqual(truth.slice(50, 101));
    expect((await listed()).slice(0, 2)).toEqual([true, false]);
    listing.close();
  });

  it('may be refused in the middle of a walk, within one millisecond too', async () => {
    const listing = openListing(server);
    const truth = sorted(Array.from({ length: 350 }, (_, i) => listing.memory(NOON - (i < 20 || i > 320 ? i : 20))));
    await listing.seed(truth);
    for (const kind of ['400', '404', '403-text'] as const) {
      const ids = walkOn(listing)(stretchOf(listing), call);
      const before = await taking({ [Symbol.asyncIterator]: () => ({ next: () => ids.next() }) }, 15);
      await server.fail({ operation: 'list', kind });
      expect([...before, ...(await taking(ids))]).toEqual(idsOf(truth));
    }
    listing.close();
  });

  it('are not asked for without end where every one is refused', async () => {
    const { listing } = await filled();
    const { service, namespaces } = listing.own;
    let asked = 0;
    const refusing: Pick<typeof service, 'list'> = {
      list: (namespace, { token, ...page }, by) => {
        asked += 1;
        return service.list(namespace, { ...page, ...(token !== undefined && { token: 'bm90IG91cnM=' }) }, by);
      },
    };
    const walk = createWalk(refusing, namespaces)(stretchOf(listing), call);
    await expect(taking(walk)).rejects.toMatchObject({ code: 'provider_error' });
    expect(asked).toBeLessThan(10);
    listing.close();
  });

  it('are not taken for refused when the service fails', async () => {
    const { listing } = await filled();
    const ids = walkOn(listing)(stretchOf(listing), call);
    await ids.next();
    await server.fail({ operation: 'list', kind: '500', times: 3 });
    await server.resetCalls();
    await expect(taking(ids)).rejects.toMatchObject({ code: 'provider_error' });
    expect(await listed()).toEqual([true, true, true]);
    listing.close();
  });
});
