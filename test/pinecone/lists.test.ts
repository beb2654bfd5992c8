import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ListQuery, Memory } from '#contract';
import { EARLIEST_MS, listOrder, timeOf, timePart } from '../../providers/pinecone/gateway-index/ids.ts';
import {
  createWalk,
  type Page,
  rememberPages,
  type Stretch,
  type Walk,
} from '../../providers/pinecone/gateway-index/list-walk.ts';
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

describe('the walk', () => {
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
});

describe('remembered pages', () => {
  const page = (past: string, ...ids: string[]): Page => ({ past, ids, next: undefined });

  describe('pages that were read lately', () => {
    it('are few a user, and the oldest go first', () => {
      const pages = rememberPages();
      for (let i = 10; i < 30; i++) pages.put('ana', page(`${i}`, `${i}x`));
      const kept = Array.from({ length: 20 }, (_, i) => pages.covering('ana', `${i + 10}`)).filter((one) => one);
      expect(kept.map((one) => one?.past)).toEqual(Array.from({ length: 16 }, (_, i) => `${i + 14}`));
    });

    it('are forgotten after five minutes, however busy the user', () => {
      let now = 1;
      const pages = rememberPages({ now: () => now });
      pages.put('ana', page('a', 'b'));
      now += 299_000;
      pages.put('ana', page('b', 'c'));
      expect(pages.covering('ana', 'a')).toBeDefined();
      now += 2_000;
      expect(pages.covering('ana', 'a')).toBeUndefined();
      pages.put('ana', page('c', 'd'));
      expect(pages.covering('ana', 'b')).toBeUndefined();
      expect(pages.covering('ana', 'c')).toBeDefined();
    });

    it('hold 100,000 ids of all users at most', () => {
      const pages = rememberPages();
      const ids = Array.from({ length: 99 }, (_, i) => `b${i}`).sort();
      for (let user = 0; user < 1_100; user++) pages.put(`${user}`, page('a', ...ids));
      const kept = Array.from({ length: 1_100 }, (_, user) => pages.covering(`${user}`, 'a')).filter((one) => one);
      expect(kept).toHaveLength(Math.floor(100_000 / 99));
    });
  });
});

describe('paging', () => {
  let server: Pinecone;
  beforeAll(async () => {
    server = await startPinecone({ dimension: DIMENSION });
  });
  afterAll(() => server.close());

  const opened: Listing[] = [];
  afterEach(async () => {
    for (const listing of opened.splice(0)) listing.close();
    await server.lag({});
  });
  const open = (options: Parameters<typeof openListing>[1] = {}): Listing => {
    const listing = openListing(server, options);
    opened.push(listing);
    return listing;
  };
  /** A user's memories, one for each of these milliseconds before noon; newest first. */
  const filled = async (
    listing: Listing,
    ago: readonly number[],
    more: (i: number) => Partial<Memory> = () => ({}),
  ) => {
    const memories = sorted(ago.map((ms, i) => listing.memory(NOON - ms, more(i))));
    await listing.seed(memories);
    return memories;
  };
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const listed = async (listing: Listing, query: Partial<ListQuery> = {}) =>
    idsOf(await listing.restarted()(listOf(listing.user_id, { limit: 501, ...query }), call));
  const at = (ago: number): string => new Date(NOON - ago).toISOString();

  describe('a list', () => {
    it('[SPEC GET /memories since] knows times that no memory can have', async () => {
      const listing = open();
      const truth = idsOf(await filled(listing, [0, 1]));
      const [before, behind] = ['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'];
      expect(await listed(listing, { since: before, until: behind })).toEqual(truth);
      expect(await listed(listing, { until: before })).toEqual([]);
      expect(await listed(listing, { since: behind })).toEqual([]);
    });

    it('[SPEC GET /memories cursor] goes on strictly after any place, also one that is no memory', async () => {
      const listing = open();
      const truth = idsOf(await filled(listing, [0, 1, 1, 1, 2, 3]));
      /** Before and behind all ids of this moment. */
      const [last, first] = ['v', '0'].map((end) => `${(truth[1] as string).slice(0, 40)}${end.repeat(16)}`) as [
        string,
        string,
      ];
      const behind = (ago: number, id: string) => listed(listing, { after: { created_at: at(ago), id } });
      expect(await behind(1, truth[2] as string)).toEqual(truth.slice(3));
      expect(await behind(1, last)).toEqual(truth.slice(1));
      expect(await behind(1, first)).toEqual(truth.slice(4));
      expect(await listed(listing, { after: { created_at: at(0), id: first }, until: at(2) })).toEqual(truth.slice(4));
      expect(await listed(listing, { after: { created_at: at(2), id: first }, until: at(1) })).toEqual(truth.slice(5));
      expect(await listed(listing, { after: { created_at: '0001-01-01T00:00:00.000Z', id: first } })).toEqual([]);
    });

    it('[SPEC GET /memories until] begins in the middle without reading what is newer', async () => {
      const listing = open();
      const day = 86_400_000;
      const truth = await filled(
        listing,
        upTo(3_000).map((i) => Math.floor((i * day) / 10)),
      );
      const query = listOf(listing.user_id, { until: at(200 * day), limit: 51 });
      const counts = await requestsOf(server, async () =>
        expect(await listing.restarted()(query, call)).toEqual(truth.slice(2_000, 2_051)),
      );
      expect(counts).toEqual({ list: 3, fetch: 1 });
    });

    it('leaves out records of other users, records that are no memories, and deleted ones', async () => {
      const listing = open();
      const truth = await filled(listing, upTo(120));
      const list = listing.restarted();
      await list(listOf(listing.user_id, { limit: 100 }), call);
      // Listed ahead, and gone.
      await listing.drop(truth.slice(98, 101));
      const others = [listing.memory(NOON - 105, { user_id: 'another' }), listing.memory(NOON - 106, { content: '' })];
      await listing.seed(others);
      const rest = truth.filter((_, i) => i > 97 && i > 100);
      expect(await list(listOf(listing.user_id, { after: truth[97] as Memory, limit: 50 }), call)).toEqual(rest);
    });
  });

  describe('a list by tags', () => {
    it('[SPEC Limits list] alone is bounded: without tags hardly anything is read in vain', async () => {
      const listing = open({ max_scan: 10 });
      const memories = await filled(listing, upTo(200), (i) => (i % 5 === 3 ? { user_id: 'another' } : {}));
      const truth = memories.filter(({ user_id }) => user_id === listing.user_id);
      expect(await allPages(paging(listing.restarted(), listing.user_id, { limit: 50 }))).toEqual(truth);
    });
  });

  describe('what this gateway wrote lately', () => {
    it('does not cost another list when some of the page was deleted', async () => {
      const listing = open();
      const truth = await filled(listing, upTo(200));
      await server.lag({ held: true });
      for (const memory of truth.slice(10, 30)) await listing.remove(memory);
      const query = listOf(listing.user_id, { limit: 51 });
      const counts = await requestsOf(server, async () =>
        expect(await listing.restarted()(query, call)).toEqual([...truth.slice(0, 10), ...truth.slice(30, 71)]),
      );
      expect(counts).toEqual({ list: 1, fetch: 1 });
    });

    it('counts more than what is older in the service, and less than what is newer there', async () => {
      const listing = open();
      const [first, second, third, ...rest] = (await filled(listing, upTo(5))) as [Memory, Memory, Memory, ...Memory[]];
      const later = (seconds: number) => new Date(NOON + seconds * 1_000).toISOString();
      await server.lag({ held: true });
      const changed = { ...second, content: 'coffee', tags: ['new'], updated_at: later(1) };
      await listing.add(changed);
      await listing.remove(third);
      expect(await listing.restarted()(listOf(listing.user_id), call)).toEqual([first, changed, ...rest]);
      expect(await listed(listing, { tags: ['new'] })).toEqual([second.id]);

      const elsewhere = { ...second, content: 'water', updated_at: later(2) };
      await listing.seed([elsewhere]);
      await server.settle();
      expect(await listing.restarted()(listOf(listing.user_id), call)).toEqual([first, elsewhere, ...rest]);
      expect(await listed(listing, { tags: ['new'] })).toEqual([]);
    });
  });
});
