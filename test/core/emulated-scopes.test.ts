import { describe, expect, it } from 'vitest';
import type { ListQuery, Memory, Provider, SearchQuery } from '#contract';
import { emulateScopes } from '../../src/core/emulated-scopes.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { call, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';
import { type FullStore, storeOf } from '../support/stores.ts';

type Full = Required<Provider>;
interface Query {
  readonly limit: number;
  readonly tags: readonly string[];
  readonly within: unknown;
}

/** The memory provider without scopes behind the emulation, and the queries it gets; `change` alters it first. */
const openEmulated = async (change: (provider: Full) => Partial<Provider> = () => ({})) => {
  const memory = await openMemory('none');
  const inner: Full = { ...memory, ...change(memory) };
  const asked: Query[] = [];
  const note = <Given extends Query>({ limit, tags, within, ...rest }: Given): Given => {
    asked.push({ limit, tags, within });
    return { limit, tags, within, ...rest } as unknown as Given;
  };
  const provider = storeOf(
    emulateScopes({
      ...inner,
      list: (query, by) => inner.list(note(query), by),
      search: (query, by) => inner.search(note(query), by),
    }),
  );
  const add = async (...scopes: readonly (string | null)[]): Promise<Memory[]> => {
    const added: Memory[] = [];
    for (const scope of scopes) added.push(await provider.add({ input: memoryOf('u', 'note', { scope }) }, call));
    return added;
  };
  const list = (more: Partial<ListQuery>) => provider.list(listOf('u', more), call);
  const search = async (more: Partial<SearchQuery>) =>
    (await provider.search(searchFor('u', 'note', more), call)).map(({ memory }) => memory);
  const limits = () => asked.map(({ limit }) => limit);
  const tags = () => asked.map((query) => query.tags);
  return { provider, inner, asked, add, list, search, limits, tags };
};
const atMost =
  (max_search_results: number) =>
  ({ capabilities }: Full): Partial<Provider> => ({ capabilities: { ...capabilities, max_search_results } });
/** A backend that answers later, so that concurrent calls overlap. */
const slow = ({ get, update, delete: remove }: Full): Partial<Provider> => {
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  return {
    get: async (...asked) => pause().then(() => get(...asked)),
    update: async (...asked) => pause().then(() => update(...asked)),
    delete: async (...asked) => pause().then(() => remove(...asked)),
  };
};
const inside = (id: string) => refTo(id, { within: ['in/*'] });
const many = (count: number, scope: (i: number) => string | null) => Array.from({ length: count }, (_, i) => scope(i));
const scopesOf = (memories: readonly Memory[]) => memories.map(({ scope }) => scope);
const ids = (memories: readonly Memory[]) => memories.map(({ id }) => id);
const aborted = callOf(AbortSignal.abort(new Error('aborted')));

describe('the provider', () => {
  it('gets no verbs it lacks, and reads what it stored', async () => {
    const { name, capabilities, get, ping, close, add } = await openMemory('none');
    const tagged = memoryOf('u', 'note', { tags: ['omp:under:a', 'omp:scope:a/b'] });
    const { id } = (await add({ input: tagged, vector: null }, call)) as Memory;
    const scoped = emulateScopes({ name, capabilities, get, ping, close });
    const defined = Object.entries(scoped).filter(([, part]) => part !== undefined);
    expect(defined.map(([part]) => part).sort()).toEqual(['capabilities', 'close', 'get', 'name', 'ping']);
    expect(await scoped.get(refTo(id, { within: ['a/*'] }), call)).toMatchObject({ scope: 'a/b', tags: [] });
    expect(await scoped.get(refTo(id, { within: ['b/*'] }), call)).toBeUndefined();
  });

  it('stores the scope of an idempotent add, and repeats it in the result', async () => {
    const { provider, inner } = await openEmulated();
    const key = { caller: 'c', key: 'k', fingerprint: 'f' };
    const adding = () => provider.add({ input: memoryOf('u', 'note', { scope: 'a/b' }), key }, call);
    const first = await adding();
    expect(first).toMatchObject({ scope: 'a/b', tags: [] });
    expect(await adding()).toEqual(first);
    expect(await provider.get(refTo(first.id), call)).toEqual(first);
    expect((await inner.get(refTo(first.id), call))?.tags).toEqual(['omp:under:a', 'omp:scope:a/b']);
  });

  it('loses its audit log, whose entries would have no scopes', async () => {
    const { audit } = await openMemory('native');
    expect((await openEmulated(() => ({ audit }))).provider.audit).toBeUndefined();
  });
});

describe('a query', () => {
  it.each<[string, Partial<ListQuery>, readonly string[], readonly string[]]>([
    ['no scope', {}, ['null', 'out', 'input/1', 'in/2', 'in/1', 'in'], []],
    ['an exact scope', { scope: 'in/1' }, ['in/1'], ['omp:scope:in/1']],
    ['whole segments of a glob', { scope: 'in/*' }, ['in/2', 'in/1'], ['omp:under:in']],
    ['whole segments before a ?', { scope: 'in/?' }, ['in/2', 'in/1'], ['omp:under:in']],
    ['a glob without a whole segment', { scope: 'in*' }, ['input/1', 'in/2', 'in/1', 'in'], []],
    ['one allowed glob', { within: ['in/*'] }, ['in/2', 'in/1'], ['omp:under:in']],
    ['one allowed scope', { within: ['in'] }, ['in'], ['omp:scope:in']],
    ['an allowed glob without a whole segment', { within: ['in*'] }, ['input/1', 'in/2', 'in/1', 'in'], []],
    ['several allowed scopes', { within: ['in/1', 'out'] }, ['out', 'in/1'], []],
    ['no allowed scope', { within: [] }, [], []],
    ['a glob and an allowed glob', { within: ['in/*'], scope: '*1' }, ['in/1'], ['omp:under:in']],
    ['a scope and an allowed glob', { within: ['in/*'], scope: 'in/2' }, ['in/2'], ['omp:scope:in/2', 'omp:under:in']],
  ])('by %s has the tags that narrow it most', async (_, query, found, narrowed) => {
    const { add, list, asked } = await openEmulated();
    await add('in', 'in/1', 'in/2', 'input/1', 'out', null);
    expect(scopesOf(await list(query)).map(String)).toEqual(found);
    expect(asked.map(({ tags, within }) => ({ tags, within }))).toEqual([{ tags: narrowed, within: null }]);
  });
});

describe('list', () => {
  it.for<[string, readonly (string | null)[], Partial<ListQuery>, number, readonly number[]]>([
    ['once with the same limit if the provider filters', many(3, () => 'a/b'), { scope: 'a/b', limit: 2 }, 2, [2]],
    ['until the page is full', many(1200, () => 'a/b'), { scope: 'a*', limit: 10 }, 10, [40]],
    [
      'to the end of the memories, and not further',
      many(1200, (i) => (i % 400 === 0 ? 'needle' : 'hay')),
      { scope: 'needl?', limit: 50 },
      3,
      [200, 500, 500, 500],
    ],
    [
      'batches that grow up to 500',
      many(700, (i) => (i === 0 ? 'needle' : 'hay')),
      { scope: 'needl?', limit: 2 },
      1,
      [8, 32, 128, 500, 500],
    ],
    ['once more if the last batch was full', many(20, () => 'hay'), { scope: 'needl?', limit: 1 }, 0, [4, 16, 64]],
    [
      'until the page of allowed scopes is full',
      many(1100, (i) => (i % 500 === 0 ? `in${i}` : 'out')),
      { within: ['in*'], limit: 2 },
      2,
      [8, 32, 128, 500],
    ],
  ])('reads %s', async ([, scopes, query, found, batches]) => {
    const { add, list, limits } = await openEmulated();
    const added = await add(...scopes);
    const page = await list(query);
    const newest = added.filter(({ scope }) => scopesOf(page).includes(scope)).reverse();
    expect(ids(page)).toEqual(ids(newest).slice(0, found));
    expect(limits()).toEqual(batches);
  });

  it('continues after a memory', async () => {
    const { add, list } = await openEmulated();
    await add(...many(1100, (i) => (i % 500 === 0 ? `in${i}` : 'out')));
    const [after] = await list({ within: ['in*'], limit: 1 });
    expect(scopesOf(await list({ within: ['in*'], limit: 5, ...(after && { after }) }))).toEqual(['in500', 'in0']);
  });

  it('stops reading when the call is aborted', async () => {
    const by = callOf();
    const { provider, add, asked } = await openEmulated(({ list }) => ({
      list: async (...query) => {
        by.abort(new Error('aborted'));
        return list(...query);
      },
    }));
    await add(...many(600, () => null));
    await expect(provider.list(listOf('u', { scope: 'x*', limit: 1 }), by)).rejects.toThrow('aborted');
    expect(asked).toHaveLength(1);
  });
});

describe('search', () => {
  const rare = (count: number, scope: string) => (i: number) => (i < count ? scope : 'hay/x');
  it.for<[string, (i: number) => string, Partial<SearchQuery>, number, readonly number[], readonly string[]]>([
    ['once with the same limit without a scope', (i) => `a/${i}`, { limit: 2 }, 2, [2], []],
    ['until the page is full', () => 'ab/c', { scope: 'a*', limit: 5 }, 5, [20], []],
    ['wider until the page is full', rare(3, 'needle'), { scope: 'need*', limit: 3 }, 3, [12, 48, 192], []],
    ['everything if there are too few', rare(3, 'needle'), { scope: 'need*', limit: 4 }, 3, [16, 64, 256], []],
    ['everything if there is none', rare(3, 'needle'), { scope: 'no*', limit: 4 }, 0, [16, 64, 256], []],
    ['once by whole segments', rare(3, 'needle/x'), { scope: 'needle/*', limit: 4 }, 3, [16], ['omp:under:needle']],
    ['by the allowed scopes', rare(2, 'in'), { within: ['in*'], limit: 2 }, 2, [8, 32, 128], []],
    ['once by the only allowed scope', rare(1, 'in'), { within: ['in'], limit: 2 }, 1, [8], ['omp:scope:in']],
    [
      'by scope and allowed scopes',
      rare(1, 'in/1'),
      { within: ['in/*'], scope: 'in*', limit: 1 },
      1,
      [4],
      ['omp:under:in'],
    ],
  ])('reads %s', async ([, scope, { scope: glob, ...query }, found, windows, narrowed]) => {
    const { add, search, limits, tags } = await openEmulated();
    const added = await add(...many(100, scope));
    // A search has a prefix, not a glob (Decision 4).
    const hits = await search({ ...query, ...(glob && { scope: glob.slice(0, -1) }) });
    const newest = added.filter((memory) => scopesOf(hits).includes(memory.scope)).reverse();
    expect(ids(hits)).toEqual(ids(newest).slice(0, found));
    expect(limits()).toEqual(windows);
    for (const each of tags()) expect(each).toEqual(narrowed);
  });

  it('never exceeds the search limit of the provider', async () => {
    const { add, search, limits } = await openEmulated(atMost(30));
    const added = await add(...many(100, (i) => (i >= 80 ? 'needle' : 'hay')));
    expect(ids(await search({ scope: 'need', limit: 20 }))).toEqual(ids(added).slice(80).reverse());
    expect(limits()).toEqual([30]);
  });

  it('is rejected with advice instead of returning a partial page at the limit of the provider', async () => {
    const { add, search, limits } = await openEmulated(atMost(30));
    expect(await search({ scope: 'x', limit: 9 })).toEqual([]);
    await add(...many(100, (i) => (i < 50 ? 'needle/x' : 'hay/x')));
    await expect(search({ scope: 'need', limit: 10 })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^scope: .*limit$/),
    });
    expect(limits()).toEqual([30, 30]);
    await expect(search({ within: ['need*'], limit: 1 })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/add a scope/),
    });
    // The advice works.
    expect(await search({ scope: 'needle/', limit: 10 })).toHaveLength(10);
    expect(await search({ within: ['need*'], scope: 'needle/', limit: 10 })).toHaveLength(10);
  });
});

describe('by id, with allowed scopes', () => {
  it.each<[string, (provider: FullStore, id: string) => Promise<unknown>, unknown]>([
    ['a delete', (provider, id) => provider.delete(inside(id), call), false],
    [
      'an update',
      (provider, id) => provider.update({ ref: inside(id), patch: { content: 'changed' } }, call),
      undefined,
    ],
    ['a move', (provider, id) => provider.update({ ref: inside(id), patch: { scope: 'in/2' } }, call), undefined],
  ])('%s that overlaps a move out finds nothing after it', async (_, perform, nothing) => {
    const { provider, add } = await openEmulated(slow);
    const [id = ''] = ids(await add('in/1'));
    const moving = provider.update({ ref: refTo(id), patch: { scope: 'out' } }, call);
    const [moved, outcome] = await Promise.all([moving, perform(provider, id)]);
    expect(moved).toMatchObject({ scope: 'out' });
    expect(outcome).toBe(nothing);
    expect(await provider.get(refTo(id), call)).toMatchObject({ scope: 'out', content: 'note' });
  });

  it('a move after a delete finds nothing', async () => {
    const { provider, add } = await openEmulated(slow);
    const [id = ''] = ids(await add('in/1'));
    const deleted = provider.delete(inside(id), call);
    const moved = provider.update({ ref: refTo(id), patch: { scope: 'out' } }, call);
    expect(await Promise.all([deleted, moved])).toEqual([true, undefined]);
  });

  it.each<[string, (provider: FullStore, id: string) => Promise<unknown>]>([
    ['a delete', (provider, id) => provider.delete(inside(id), aborted)],
    ['a move', (provider, id) => provider.update({ ref: refTo(id), patch: { scope: 'c' } }, aborted)],
  ])('%s that is aborted in the queue is not executed', async (_, perform) => {
    const { provider, add } = await openEmulated(slow);
    const [id = ''] = ids(await add('in/1'));
    const first = provider.update({ ref: inside(id), patch: { content: 'x', scope: 'in/2' } }, call);
    await expect(perform(provider, id)).rejects.toThrow('aborted');
    await first;
    expect(await provider.get(refTo(id), call)).toMatchObject({ content: 'x', scope: 'in/2' });
  });
});

describe('update', () => {
  it('of scope and of tags at the same time keeps both', async () => {
    const { provider } = await openEmulated(slow);
    for (let round = 0; round < 20; round++) {
      const { id } = await provider.add({ input: memoryOf('u', 'note', { scope: 'old', tags: ['old'] }) }, call);
      const extensions = { 'x-n': round };
      const patches = [{ scope: 'new' }, { tags: ['new'] }, { confidence: 0.5 }, { scope: 'new', extensions }];
      await Promise.all(patches.map((patch) => provider.update({ ref: refTo(id), patch }, call)));
      const all = { scope: 'new', tags: ['new'], confidence: 0.5, extensions };
      expect(await provider.get(refTo(id), call)).toMatchObject(all);
    }
  });

  it('that fails does not block the next one', async () => {
    let failing = true;
    const { provider, add } = await openEmulated(({ update }) => ({
      update: async (...asked) => (failing ? Promise.reject(new Error('broken')) : update(...asked)),
    }));
    const [id = ''] = ids(await add('a'));
    const move = (scope: string) => provider.update({ ref: refTo(id), patch: { scope } }, call);
    const outcomes = await Promise.allSettled([move('b'), move('c')]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    failing = false;
    expect(await move('d')).toMatchObject({ scope: 'd' });
  });
});

describe('users', () => {
  it('[Decision 37] are counted by what a restricted caller may list, and left out if that is nothing', async () => {
    const asked: unknown[] = [];
    const summary = (user_id: string) => ({ user_id, count: 603, last_write: '2030-01-01T00:00:00.000Z' });
    const { provider, add } = await openEmulated(() => ({
      async users({ within, limit }) {
        asked.push({ within, limit });
        return { items: [summary('u'), summary('nobody')], next: 'more' };
      },
    }));
    const inScope = await add(...many(601, () => 'in/x'));
    await add('in', 'out/x', null);
    const query = { users: null, limit: 50 };
    expect(await provider.users({ ...query, within: null }, call)).toEqual({
      items: [summary('u'), summary('nobody')],
      next: 'more',
    });
    expect(await provider.users({ ...query, within: ['in/*'] }, call)).toEqual({
      items: [{ user_id: 'u', count: 601, last_write: inScope.at(-1)?.updated_at }],
      next: 'more',
    });
    expect(asked).toEqual([
      { within: null, limit: 50 },
      { within: null, limit: 20 },
    ]);
  });
});
