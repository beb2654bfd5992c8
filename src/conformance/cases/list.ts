import { type Case, check, idsOf, type Kit, record, same } from '../kit.ts';
import type { Memory } from '../protocol.ts';

const sorted = (ids: readonly string[]): string[] => [...ids].sort();
/** A page may be shorter than its limit, so what matches is all pages together. */
const sortedIds = async ({ pages }: Kit, query: Parameters<Kit['pages']>[0]) => sorted(idsOf(await pages(query)));
const moment = (memory: Memory | undefined, by = 0): string =>
  new Date(Date.parse(memory?.created_at ?? '') + by).toISOString();

/** Filters of one user's memories, and paging. */
export const LIST: readonly Case[] = [
  {
    id: 'list.page',
    clauses: ['GET /memories', 'MemoryPage items', 'Service no wrapper'],
    title: 'answers a page of whole memories',
    needs: ['list'],
    async run({ add, list, stores, user }) {
      const more = {
        ...((await stores('tags')) && { tags: ['a'] }),
        ...((await stores('confidence')) && { confidence: 0.25 }),
      };
      const user_id = user();
      const added = await add({ user_id, ...more });
      same((await list({ user_id })).items.map(record), [record(added)], 'items');
    },
  },
  {
    id: 'list.empty',
    clauses: ['GET /memories', 'MemoryPage next_cursor'],
    title: 'a user without memories has an empty page without a cursor',
    needs: ['list'],
    readOnly: true,
    async run({ list, user }) {
      const { items, next_cursor } = await list({ user_id: user() });
      same([items, next_cursor ?? null], [[], null], 'items and next_cursor');
    },
  },
  {
    id: 'list.user_id-required',
    clauses: ['GET /memories user_id', 'Errors invalid_request'],
    title: 'user_id is required',
    needs: ['list'],
    readOnly: true,
    run: ({ ask, refused }) => refused(ask('/memories'), 'invalid_request'),
  },
  {
    id: 'list.user_id',
    clauses: ['GET /memories user_id', 'Service users'],
    title: 'shows only the memories of that user',
    needs: ['list'],
    async run(kit) {
      const user_id = kit.user();
      const mine = await kit.add({ user_id });
      for (const other of [`${user_id}y`, user_id.slice(0, -1), user_id.toUpperCase(), `${user_id}/x`, '%', '_', '*']) {
        check(
          !(await sortedIds(kit, { user_id: other })).includes(mine.id),
          `user_id=${other} must not show memories of ${user_id}`,
        );
      }
      for (const other of [kit.user(), `${user_id}y`]) await kit.add({ user_id: other });
      same(await sortedIds(kit, { user_id }), [mine.id], 'the ids of the list');
    },
  },
  {
    id: 'list.tag',
    clauses: ['GET /memories tag'],
    title: 'tag finds the memories that have exactly this tag, each once',
    needs: ['list', 'tags'],
    async run(kit) {
      const user_id = kit.user();
      const add = async (...tags: string[]) => (await kit.add({ user_id, tags })).id;
      const [both, one, other] = [await add('red', 'green'), await add('red'), await add('green', 'redder')];
      await kit.add({ user_id });
      for (const [tag, ids] of [
        ['red', [both, one]],
        ['green', [both, other]],
        ['redder', [other]],
        ...['re', 'RED', 'r*', 'red,green', '%'].map((none) => [none, []] as const),
      ] as const) {
        same(await sortedIds(kit, { user_id, tag }), sorted(ids), `the ids with tag=${tag}`);
      }
    },
  },
  {
    id: 'list.limit',
    clauses: ['GET /memories limit', 'Limits list'],
    title: 'a page holds at most limit memories, by default 50',
    needs: ['list'],
    async run({ addAll, list, user }) {
      const user_id = user();
      await addAll(user_id, 52);
      for (const [limit, most] of [
        [undefined, 50],
        [1, 1],
        [7, 7],
        [500, 52],
      ] as const) {
        const { items, next_cursor } = await list({ user_id, limit });
        check(
          items.length <= most,
          `a page with limit ${limit ?? 'unset'} must hold at most ${most}, holds ${items.length}`,
        );
        check(items.length === most || next_cursor != null, 'a page that is not the last must have a next_cursor');
      }
    },
  },
  {
    id: 'list.limit-wrong',
    clauses: ['GET /memories limit', 'Errors invalid_request'],
    title: 'a limit outside 1 to 500 answers 400',
    needs: ['list'],
    readOnly: true,
    async run({ ask, refused, user }) {
      const user_id = user();
      for (const limit of ['0', '-1', '501', 'abc', '1.5'])
        await refused(ask('/memories', { user_id, limit }), 'invalid_request');
    },
  },
  {
    id: 'list.pagination',
    clauses: ['GET /memories pagination', 'GET /memories cursor', 'MemoryPage next_cursor'],
    title: 'the pages hold every memory once, and end with null',
    needs: ['list'],
    async run(kit) {
      const user_id = kit.user();
      const ids = sorted(idsOf(await kit.addAll(user_id, 12)));
      for (const limit of [1, 5, 6, 12, 13])
        same(await sortedIds(kit, { user_id, limit }), ids, `the ids at limit ${limit}`);
    },
  },
  {
    id: 'list.cursor-stable',
    clauses: ['GET /memories cursor', 'GET /memories pagination'],
    title: 'adding and deleting between pages neither repeats nor loses a memory',
    needs: ['list', 'delete'],
    async run({ add, addAll, remove, pages, user }) {
      const user_id = user();
      const ids = idsOf(await addAll(user_id, 12));
      const doomed = [ids[1], ids[5], ids[8], ids[10]].map(String);
      const survivors = ids.filter((id) => !doomed.includes(id));
      const seen = idsOf(
        await pages({ user_id, limit: 2 }, async () => {
          await add({ user_id });
          const next = doomed.pop();
          if (next !== undefined) await remove(next);
        }),
      );
      same(seen.length, new Set(seen).size, 'the number of different ids');
      same(
        sorted(seen.filter((id) => survivors.includes(id))),
        sorted(survivors),
        'the ids that were there all the time',
      );
    },
  },
  {
    id: 'list.cursor-filter',
    clauses: ['GET /memories cursor', 'GET /memories tag'],
    title: 'every page keeps to the filter',
    needs: ['list', 'tags'],
    async run(kit) {
      const user_id = kit.user();
      const ids: string[] = [];
      for (let n = 0; n < 9; n++) {
        const { id } = await kit.add({ user_id, tags: [n % 3 === 0 ? 'third' : 'other'] });
        if (n % 3 === 0) ids.push(id);
      }
      same(await sortedIds(kit, { user_id, tag: 'third', limit: 2 }), sorted(ids), 'the ids of all pages');
    },
  },
  {
    id: 'list.cursor-wrong',
    clauses: ['GET /memories cursor', 'MemoryPage opaque', 'Errors invalid_request'],
    title: 'a cursor that no page gave answers 400',
    needs: ['list'],
    readOnly: true,
    run: ({ ask, refused, user }) =>
      refused(ask('/memories', { user_id: user(), cursor: 'no cursor at all' }), 'invalid_request'),
  },
  {
    id: 'list.time-wrong',
    clauses: ['GET /memories since', 'GET /memories until', 'Errors invalid_request'],
    title: 'since and until that are no time answer 400',
    needs: ['list', 'temporal'],
    readOnly: true,
    async run({ ask, refused, user }) {
      const user_id = user();
      for (const bound of ['since', 'until']) {
        for (const time of ['soon', '2024-13-01'])
          await refused(ask('/memories', { user_id, [bound]: time }), 'invalid_request');
      }
    },
  },
  {
    id: 'list.time',
    clauses: ['Capabilities features.temporal', 'GET /memories since', 'GET /memories until'],
    title: 'since and until filter by created_at, both inclusive',
    needs: ['list', 'temporal', 'created_at'],
    async run(kit) {
      const user_id = kit.user();
      const added = [await kit.add({ user_id })];
      for (const _ of [2, 3]) {
        await kit.tick(added.at(-1) as Memory);
        added.push(await kit.add({ user_id }));
      }
      const [first, second, third] = added;
      for (const [since, until, expected] of [
        [moment(second), undefined, [second, third]],
        [undefined, moment(second), [first, second]],
        [moment(second), moment(second), [second]],
        [moment(second, 1), undefined, [third]],
        [undefined, moment(second, -1), [first]],
        [moment(third), moment(first), []],
        [undefined, '2001-01-01T00:00:00Z', []],
      ] as const) {
        const ids = sorted(expected.map((memory) => memory?.id ?? ''));
        same(
          await sortedIds(kit, { user_id, since, until }),
          ids,
          `the ids since ${since ?? 'ever'} until ${until ?? 'ever'}`,
        );
      }
    },
  },
];
