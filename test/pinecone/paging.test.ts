import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ListQuery, Memory } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { callBy, listOf } from '../support/requests.ts';
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
const filled = async (listing: Listing, ago: readonly number[], more: (i: number) => Partial<Memory> = () => ({})) => {
  const memories = sorted(ago.map((ms, i) => listing.memory(NOON - ms, more(i))));
  await listing.seed(memories);
  return memories;
};
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const listed = async (listing: Listing, query: Partial<ListQuery> = {}) =>
  idsOf(await listing.restarted()(listOf(listing.user_id, { limit: 501, ...query }), call));
const at = (ago: number): string => new Date(NOON - ago).toISOString();

describe('a list', () => {
  it.each(['single', 'sharded', 'per-user'] as const)(
    '[SPEC GET /memories pagination] of the layout "%s" pages newest first through its namespace',
    async (layout) => {
      const listing = open({ layout });
      const truth = await filled(listing, upTo(230));
      await server.resetCalls();
      const pages = paging(listing.restarted(), listing.user_id, { limit: 50 });
      expect(await allPages(pages)).toEqual(truth);
      for (const { path } of await server.calls()) {
        expect(new URL(path, server.url).searchParams.get('namespace')).toBe(listing.namespace);
      }
    },
  );

  it.each([1, 7, 50, 98, 99, 100, 110])(
    '[Decision 1] is in order within one millisecond too, in pages of %i',
    async (limit) => {
      const listing = open();
      const truth = await filled(
        listing,
        upTo(110).map((i) => (i < 10 || i > 100 ? i : Math.floor(i / 40) * 40)),
      );
      const list = listing.restarted();
      expect(await allPages(paging(list, listing.user_id, { limit }))).toEqual(truth);
      const afresh = paging((query, by) => listing.restarted()(query, by), listing.user_id, { limit });
      expect(await allPages(afresh)).toEqual(truth);
    },
  );

  it('[SPEC GET /memories since] [SPEC GET /memories until] takes in both ends, to the millisecond', async () => {
    const listing = open();
    const truth = await filled(listing, [0, 1, 1, 2, 2, 2, 3, 3, 4, 1_000, 2_000]);
    const between = (from: number, to: number) =>
      idsOf(truth.filter(({ created_at }) => created_at >= at(to) && created_at <= at(from)));
    for (const until of [-1, 0, 1, 2, 3, 4, 5, 999, 1_000, 1_001, 2_000, 2_001]) {
      expect(await listed(listing, { until: at(until) })).toEqual(between(until, 9_999));
      expect(await listed(listing, { since: at(until) })).toEqual(between(-9_999, until));
      for (const since of [until - 1, until, until + 1, until + 998]) {
        expect(await listed(listing, { until: at(until), since: at(since) })).toEqual(between(until, since));
      }
    }
  });

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
    const behind = (ago: number, id: string) => listed(listing, { after: { created_at: at(ago), id } });
    expect(await behind(1, truth[2] as string)).toEqual(truth.slice(3));
    expect(await behind(1, '~')).toEqual(truth.slice(1));
    expect(await behind(1, '!')).toEqual(truth.slice(4));
    expect(await listed(listing, { after: { created_at: at(0), id: '!' }, until: at(2) })).toEqual(truth.slice(4));
    expect(await listed(listing, { after: { created_at: at(2), id: '!' }, until: at(1) })).toEqual(truth.slice(5));
    expect(await listed(listing, { after: { created_at: '0001-01-01T00:00:00.000Z', id: '!' } })).toEqual([]);
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

  it('leaves out what is of somebody else, no memory, or gone since it was listed', async () => {
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
  const rare = (i: number): Partial<Memory> => ({ tags: i % 60 === 0 ? ['a', 'b'] : i % 2 === 0 ? ['a'] : [] });

  it('[SPEC GET /memories tag] reads on until the page is full, and finds all', async () => {
    const listing = open();
    const truth = await filled(listing, upTo(1_000), rare);
    const list = listing.restarted();
    for (const tags of [['a'], ['b'], ['a', 'b'], ['c']]) {
      const expected = truth.filter((memory) => tags.every((tag) => memory.tags.includes(tag)));
      for await (const page of paging(list, listing.user_id, { limit: 5, tags })) {
        expect(page).toEqual(expected.splice(0, 5));
      }
      expect(expected).toEqual([]);
    }
    expect(await listed(listing, { tags: ['a'], limit: 3 })).toHaveLength(3);
  });

  it('[SPEC Errors invalid_request] says so when more would have to be read than is allowed, and never answers short', async () => {
    const make = async (max_scan: number, count = 300) => {
      const listing = open({ max_scan });
      const truth = await filled(listing, upTo(count), (i) => ({ tags: [100, 199, 299].includes(i) ? ['x'] : [] }));
      const wanted = truth.filter(({ tags }) => tags.length > 0);
      return { list: (limit: number) => listed(listing, { tags: ['x'], limit }), wanted: idsOf(wanted) };
    };
    const exact = await make(300);
    expect(await exact.list(5)).toEqual(exact.wanted);
    const less = await make(299);
    await expect(less.list(3)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/299.*since/),
    });
    expect(await less.list(2)).toEqual(less.wanted.slice(0, 2));
    const least = await make(200);
    expect(await least.list(2)).toEqual(least.wanted.slice(0, 2));
    const tooFew = await make(199);
    await expect(tooFew.list(2)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await tooFew.list(1)).toEqual(tooFew.wanted.slice(0, 1));
  });

  it('[SPEC Limits list] alone is bounded: without tags hardly anything is read in vain', async () => {
    const listing = open({ max_scan: 10 });
    const memories = await filled(listing, upTo(200), (i) => (i % 5 === 3 ? { user_id: 'another' } : {}));
    const truth = memories.filter(({ user_id }) => user_id === listing.user_id);
    expect(await allPages(paging(listing.restarted(), listing.user_id, { limit: 50 }))).toEqual(truth);
  });
});

describe('what this gateway wrote lately', () => {
  it('is in its place, though the service shows nothing of it yet', async () => {
    const listing = open();
    const old = await filled(
      listing,
      upTo(200).map((i) => i * 2),
    );
    await server.lag({ held: true });
    const added = upTo(120).map((i) => listing.memory(NOON - (i * 3 + 1)));
    for (const memory of added) await listing.add(memory);
    const removed = [...old, ...added].filter((_, i) => i % 7 === 0);
    for (const memory of removed) await listing.remove(memory);
    const truth = sorted([...old, ...added].filter((memory) => !removed.includes(memory)));
    for (const limit of [1, 20, 50, 500]) {
      expect(await allPages(paging(listing.restarted(), listing.user_id, { limit }))).toEqual(truth);
    }
    const range = { since: at(250), until: at(31) };
    const inside = truth.filter(({ created_at }) => created_at >= range.since && created_at <= range.until);
    expect(await listed(listing, range)).toEqual(idsOf(inside));

    await server.settle();
    expect(await listed(listing)).toEqual(idsOf(truth));
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

  it('elsewhere is waited for where the call names it, and the call is told when that was not enough', async () => {
    const listing = open();
    await filled(listing, [1]);
    await server.lag({ held: true });
    const { service, consistency } = listing.own;
    let token = '';
    const writing = callBy(
      {},
      {
        consistency: {
          token: undefined,
          answer: (given) => {
            token = given;
          },
          behind() {},
        },
      },
    );
    const record = { id: listing.memory(NOON).id, values: Float32Array.of(0, 1), metadata: { content: 'x' } };
    consistency.wrote(listing.namespace, await service.upsert(listing.namespace, record, call), writing);
    let behind = 0;
    const reading = callBy(
      {},
      {
        consistency: {
          token,
          answer() {},
          behind: () => {
            behind += 1;
          },
        },
      },
    );
    await listing.restarted()(listOf(listing.user_id), reading);
    expect(behind).toBe(1);
    await server.settle();
    await listing.restarted()(listOf(listing.user_id), reading);
    expect(behind).toBe(1);
  });
});
