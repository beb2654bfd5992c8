import { describe, expect, it } from 'vitest';
import { type Memory, OmpError, type Provider } from '#contract';
import { emulateScopes } from '../../src/core/emulated-scopes.ts';
import { type AllMemories, memoriesOf, type WritableMemories } from '../support/memories.ts';
import { call, callBy, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';

const input = (content: string, scope: string | null = null, tags: readonly string[] = []) =>
  memoryOf('u', content, { scope, tags });

interface Asked {
  readonly verb: 'list' | 'search';
  readonly limit: number;
  readonly tags: readonly string[];
}

/** The memory provider without scopes, that tells what it was asked; `change` alters it first. */
const openCounted = async (change: (provider: Provider) => Provider = (provider) => provider) => {
  const asked: Asked[] = [];
  const inner = change(await openMemory('none'));
  const { list, search } = inner as Required<Provider>;
  const provider = memoriesOf(
    emulateScopes({
      ...inner,
      list: (query, by) => {
        asked.push({ verb: 'list', limit: query.limit, tags: query.tags });
        return list(query, by);
      },
      search: (query, by) => {
        asked.push({ verb: 'search', limit: query.limit, tags: query.tags });
        return search(query, by);
      },
    }),
  );
  return { provider, inner: memoriesOf(inner), bare: inner, asked };
};
const atMost =
  (max_search_results: number) =>
  (provider: Provider): Provider => ({ ...provider, capabilities: { ...provider.capabilities, max_search_results } });

const add = async (
  provider: WritableMemories,
  rows: number,
  scope: (i: number) => string | null,
): Promise<Memory[]> => {
  const added: Memory[] = [];
  for (let i = 0; i < rows; i++) added.push(await provider.add(input('note', scope(i)), call));
  return added;
};
const ids = (memories: readonly Memory[]): string[] => memories.map(({ id }) => id);
const limitsOf = (asked: readonly Asked[]): number[] => asked.map(({ limit }) => limit);

describe('a missing verb of the provider', () => {
  it('stays missing', async () => {
    const { inner } = await openCounted();
    const { get, ping, close, name, capabilities } = inner;
    const { id } = await inner.add({ ...input('note'), tags: ['omp:under:a', 'omp:scope:a/b'] }, call);
    const scoped = emulateScopes({ name, capabilities, get, ping, close });
    const { add: keep, idempotency, update, delete: remove, list, search, audit, keys: stored } = scoped;
    expect([keep, idempotency, update, remove, list, search, audit, stored]).toEqual(Array(8).fill(undefined));
    // What it has works: reading is the least.
    expect(await scoped.get(refTo(id, { within: ['a/*'] }), call)).toMatchObject({ scope: 'a/b', tags: [] });
    expect(await scoped.get(refTo(id, { within: ['b/*'] }), call)).toBeUndefined();
  });
});

describe('list', () => {
  const list = (provider: AllMemories, scope: string | undefined, limit: number) =>
    provider.list(listOf('u', { limit, ...(scope !== undefined && { scope }) }), call);

  it('sends one query with the same limit if the provider can filter', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 3, (i) => (i === 0 ? null : 'a/b'));
    expect(await list(provider, undefined, 2)).toHaveLength(2);
    expect(await list(provider, 'a/b', 2)).toHaveLength(2);
    expect(asked).toEqual([
      { verb: 'list', limit: 2, tags: [] },
      { verb: 'list', limit: 2, tags: ['omp:scope:a/b'] },
    ]);
  });

  it('lets the provider filter by the whole segments of a glob', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 3, () => 'a/b/c');
    expect(await list(provider, 'a/b/*', 5)).toHaveLength(3);
    expect(await list(provider, 'a/b?c', 5)).toHaveLength(3);
    expect(await list(provider, 'a*', 5)).toHaveLength(3);
    expect(asked.map(({ tags }) => tags)).toEqual([['omp:under:a/b'], ['omp:under:a'], []]);
  });

  it('stops as soon as the page is full', async () => {
    const { provider, asked } = await openCounted();
    const added = await add(provider, 1200, () => 'a/b');
    expect(ids(await list(provider, 'a*', 10))).toEqual(ids(added).reverse().slice(0, 10));
    expect(asked).toHaveLength(1);
  });

  it('reads to the end of the memories, and not further', async () => {
    const { provider, asked } = await openCounted();
    const added = await add(provider, 1200, (i) => (i % 400 === 0 ? 'needle' : 'hay'));
    const expected = ids(added.filter(({ scope }) => scope === 'needle')).reverse();
    expect(ids(await list(provider, 'needl?', 50))).toEqual(expected);
    expect(limitsOf(asked)).toEqual([200, 500, 500, 500]);
  });

  it('starts with a small batch and increases it up to 500', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 700, (i) => (i === 0 ? 'needle' : 'hay'));
    expect(await list(provider, 'needl?', 2)).toHaveLength(1);
    expect(limitsOf(asked)).toEqual([8, 32, 128, 500, 500]);
  });

  it('reads once more if the last batch was exactly full', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 20, () => 'hay');
    expect(await list(provider, 'needl?', 1)).toEqual([]);
    expect(limitsOf(asked)).toEqual([4, 16, 64]);
  });

  it('stops fetching when the call is aborted', async () => {
    const controller = new AbortController();
    const { provider, inner, asked } = await openCounted((memory) => ({
      ...memory,
      list: async (...query) => {
        controller.abort(new Error('gone'));
        return (memory as Required<Provider>).list(...query);
      },
    }));
    await add(inner, 600, () => null);
    const by = callBy({}, { signal: controller.signal });
    const pending = provider.list(listOf('u', { scope: 'x*', limit: 1 }), by);
    await expect(pending).rejects.toThrow('gone');
    expect(asked).toHaveLength(1);
  });
});

describe('search', () => {
  const search = (provider: AllMemories, scope: string | undefined, limit: number) =>
    provider.search(searchFor('u', 'note', { limit, ...(scope !== undefined && { scope }) }), call);
  const found = async (...asked: Parameters<typeof search>) =>
    ids((await search(...asked)).map(({ memory }) => memory));

  it('sends one query with the same limit without a scope', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 5, (i) => `a/${i}`);
    const hits = await search(provider, undefined, 2);
    expect(hits.map(({ memory }) => memory.scope)).toEqual(['a/4', 'a/3']);
    expect(asked).toEqual([{ verb: 'search', limit: 2, tags: [] }]);
  });

  it('stops as soon as the page is full', async () => {
    const { provider, asked } = await openCounted();
    const added = await add(provider, 100, () => 'ab/c');
    expect(await found(provider, 'a', 5)).toEqual(ids(added).reverse().slice(0, 5));
    expect(asked).toEqual([{ verb: 'search', limit: 20, tags: [] }]);
  });

  it('widens its window until the page is full', async () => {
    const { provider, asked } = await openCounted();
    const added = await add(provider, 100, (i) => (i < 3 ? 'needle' : 'hay'));
    expect(await found(provider, 'need', 3)).toEqual(ids(added).slice(0, 3).reverse());
    expect(asked.map(({ limit }) => limit)).toEqual([12, 48, 192]);
  });

  it('returns fewer hits only if there are no more', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 100, (i) => (i < 3 ? 'needle' : 'hay'));
    expect(await found(provider, 'need', 4)).toHaveLength(3);
    expect(await found(provider, 'nothing', 4)).toEqual([]);
    expect(asked.every(({ limit }) => limit <= 256)).toBe(true);
  });

  it('filters by whole segments in the provider, and then needs no second query', async () => {
    const { provider, asked } = await openCounted();
    await add(provider, 100, (i) => (i < 3 ? 'needle/x' : 'hay/x'));
    expect(await found(provider, 'needle/', 4)).toHaveLength(3);
    expect(asked).toEqual([{ verb: 'search', limit: 16, tags: ['omp:under:needle'] }]);
  });

  it('never exceeds the search limit of the provider', async () => {
    const { provider, asked } = await openCounted(atMost(30));
    const added = await add(provider, 100, (i) => (i >= 80 ? 'needle' : 'hay'));
    expect(await found(provider, 'need', 20)).toEqual(ids(added).slice(80).reverse());
    expect(asked.map(({ limit }) => limit)).toEqual([30]);
  });

  it('rejects with advice instead of returning a partial page at the limit of the provider', async () => {
    const { provider, asked } = await openCounted(atMost(30));
    await add(provider, 100, (i) => (i < 50 ? 'needle/x' : 'hay/x'));
    const refusal = await search(provider, 'need', 10).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(OmpError);
    expect(refusal).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/^scope: .*limit$/) });
    expect(asked.map(({ limit }) => limit)).toEqual([30]);
    // The way out works.
    expect(await found(provider, 'needle/', 10)).toHaveLength(10);
    // Exhausted within the bound is no refusal.
    expect(await search((await openCounted(atMost(30))).provider, 'x', 9)).toEqual([]);
  });
});

describe('update', () => {
  it('keeps the scope if only tags change, and the tags if only the scope changes', async () => {
    const { provider } = await openCounted();
    const { id } = await provider.add(input('note', 'a/b', ['t', 'omp:scope:x']), call);
    expect(await provider.update(refTo(id), { tags: ['u'] }, call)).toMatchObject({ scope: 'a/b', tags: ['u'] });
    expect(await provider.update(refTo(id), { scope: 'c' }, call)).toMatchObject({ scope: 'c', tags: ['u'] });
    expect(await provider.update(refTo(id), { content: 'other' }, call)).toMatchObject({
      scope: 'c',
      tags: ['u'],
      content: 'other',
    });
    expect(await provider.update(refTo('mem_none'), { scope: 'c' }, call)).toBeUndefined();
    expect(await provider.update(refTo(id, { users: ['other'] }), { scope: 'd' }, call)).toBeUndefined();
  });

  it('of scope and of tags at the same time keeps both', async () => {
    // A backend takes its time, so that patches overlap.
    const { provider } = await openCounted((memory) => {
      const { get, update } = memory as Required<Provider>;
      const pause = () => new Promise((resolve) => setImmediate(resolve));
      return {
        ...memory,
        get: async (...asked) => pause().then(() => get(...asked)),
        update: async (...asked) => pause().then(() => update(...asked)),
      };
    });
    for (let round = 0; round < 20; round++) {
      const { id } = await provider.add(input('note', 'old', ['old']), call);
      const patches = [
        { scope: 'new' },
        { tags: ['new'] },
        { confidence: 0.5 },
        { scope: 'new', extensions: { 'x-n': round } },
      ];
      await Promise.all(patches.map((patch) => provider.update(refTo(id), patch, call)));
      expect(await provider.get(refTo(id), call)).toMatchObject({
        scope: 'new',
        tags: ['new'],
        confidence: 0.5,
        extensions: { 'x-n': round },
      });
    }
  });

  it('that fails does not block the next one', async () => {
    let failing = true;
    const { provider } = await openCounted((memory) => ({
      ...memory,
      update: async (...asked) => {
        if (failing) throw new OmpError('provider_error', 'broken');
        return (memory as Required<Provider>).update(...asked);
      },
    }));
    const { id } = await provider.add(input('note', 'a'), call);
    const first = provider.update(refTo(id), { scope: 'b' }, call);
    const second = provider.update(refTo(id), { scope: 'c' }, call);
    await expect(first).rejects.toThrow('broken');
    await expect(second).rejects.toThrow('broken');
    failing = false;
    expect(await provider.update(refTo(id), { scope: 'd' }, call)).toMatchObject({ scope: 'd' });
  });

  it('that is aborted in the queue is not executed', async () => {
    const { provider } = await openCounted();
    const { id } = await provider.add(input('note', 'a'), call);
    const first = provider.update(refTo(id), { scope: 'b' }, call);
    const gone = AbortSignal.abort(new Error('gone'));
    await expect(provider.update(refTo(id), { scope: 'c' }, { ...call, signal: gone })).rejects.toThrow('gone');
    await first;
    expect(await provider.get(refTo(id), call)).toMatchObject({ scope: 'b' });
  });
});
