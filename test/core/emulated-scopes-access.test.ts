import { describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { emulateScopes } from '../../src/core/emulated-scopes.ts';
import { type AllMemories, memoriesOf } from '../support/memories.ts';
import { call, callBy, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';

type Full = Required<Provider>;
const input = (scope: string | null, user = 'u') => memoryOf(user, 'note', { scope });
const inside = (id: string) => refTo(id, { within: ['in/*'] });

/** The memory provider without scopes, which tells what it is asked, behind the emulation; `change` alters it first. */
const openEmulated = async (change: (provider: Full) => Partial<Provider> = () => ({})) => {
  const inner = (await openMemory('none')) as Full;
  const asked: { verb: string; tags: readonly string[]; limit: number; within: unknown }[] = [];
  const told: Partial<Provider> = {
    list: (query, by) => {
      asked.push({ verb: 'list', tags: query.tags, limit: query.limit, within: query.within });
      return inner.list(query, by);
    },
    search: (query, by) => {
      asked.push({ verb: 'search', tags: query.tags, limit: query.limit, within: query.within });
      return inner.search(query, by);
    },
  };
  const provider = memoriesOf(emulateScopes({ ...inner, ...told, ...change(inner) }));
  const add = async (...scopes: readonly (string | null)[]) => {
    const ids: string[] = [];
    for (const scope of scopes) ids.push((await provider.add(input(scope), call)).id);
    return ids;
  };
  return { provider, inner, asked, add };
};
/** A backend that takes its time, so that what is not kept apart overlaps. */
const slow = ({ get, update, delete: remove }: Full): Partial<Provider> => {
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  return {
    get: async (...asked) => pause().then(() => get(...asked)),
    update: async (...asked) => pause().then(() => update(...asked)),
    delete: async (...asked) => pause().then(() => remove(...asked)),
  };
};

describe('by id, with allowed scopes', () => {
  it('records of other scopes and other users are absent', async () => {
    const { provider, add } = await openEmulated();
    const [own = '', other = '', unscoped = ''] = await add('in/1', 'out', null);
    expect(await provider.get(inside(own), call)).toMatchObject({ scope: 'in/1' });
    expect(await provider.update(inside(own), { content: 'x' }, call)).toMatchObject({ content: 'x', scope: 'in/1' });
    for (const ref of [inside(other), inside(unscoped), refTo(own, { users: ['v'], within: ['in/*'] })]) {
      expect(await provider.get(ref, call)).toBeUndefined();
      expect(await provider.update(ref, { content: 'changed' }, call)).toBeUndefined();
      expect(await provider.update(ref, { scope: 'in/2' }, call)).toBeUndefined();
      expect(await provider.delete(ref, call)).toBe(false);
      expect(await provider.get(refTo(ref.id), call)).not.toMatchObject({ content: 'changed' });
    }
    expect(await provider.delete(inside(own), call)).toBe(true);
    expect(await provider.get(refTo(own), call)).toBeUndefined();
  });

  it.each([
    ['a delete', (provider: AllMemories, id: string) => provider.delete(inside(id), call), false],
    [
      'an update',
      (provider: AllMemories, id: string) => provider.update(inside(id), { content: 'changed' }, call),
      undefined,
    ],
    ['a move', (provider: AllMemories, id: string) => provider.update(inside(id), { scope: 'in/2' }, call), undefined],
  ] as const)('%s that comes after a move out finds nothing, however they overlap', async (_, perform, nothing) => {
    const { provider, add } = await openEmulated(slow);
    const [id = ''] = await add('in/1');
    const [moved, outcome] = await Promise.all([
      provider.update(refTo(id), { scope: 'out' }, call),
      perform(provider, id),
    ]);
    expect(moved).toMatchObject({ scope: 'out' });
    expect(outcome).toBe(nothing);
    expect(await provider.get(refTo(id), call)).toMatchObject({ scope: 'out', content: 'note' });
  });

  it('an update of the scope after a delete finds nothing', async () => {
    const { provider, add } = await openEmulated(slow);
    const [id = ''] = await add('in/1');
    const outcomes = await Promise.all([
      provider.delete(inside(id), call),
      provider.update(refTo(id), { scope: 'out' }, call),
    ]);
    expect(outcomes).toEqual([true, undefined]);
  });

  it('a delete that is aborted in the queue is not executed', async () => {
    const { provider, add } = await openEmulated(slow);
    const [id = ''] = await add('in/1');
    const first = provider.update(inside(id), { content: 'x' }, call);
    const gone = callBy({}, { signal: AbortSignal.abort(new Error('gone')) });
    await expect(provider.delete(inside(id), gone)).rejects.toThrow('gone');
    await first;
    expect(await provider.get(refTo(id), call)).toMatchObject({ content: 'x' });
  });
});

describe('list with allowed scopes', () => {
  const scopesOf = async (provider: AllMemories, ...query: [more: Parameters<typeof listOf>[1]]) =>
    (await provider.list(listOf('u', ...query), call)).map(({ scope }) => scope);

  it('lets the provider filter by the whole segments of a single glob, or by its exact scope', async () => {
    const { provider, asked, add } = await openEmulated();
    await add('in/1', 'in/2', 'input/1', 'in', 'out', null);
    expect(await scopesOf(provider, { within: ['in/*'] })).toEqual(['in/2', 'in/1']);
    expect(await scopesOf(provider, { within: ['in'] })).toEqual(['in']);
    expect(await scopesOf(provider, { within: ['in*'] })).toEqual(['in', 'input/1', 'in/2', 'in/1']);
    expect(await scopesOf(provider, { within: ['in/1', 'out'] })).toEqual(['out', 'in/1']);
    expect(await scopesOf(provider, { within: ['in/*'], scope: '*1' })).toEqual(['in/1']);
    expect(await scopesOf(provider, { within: ['in/*'], scope: 'in/2' })).toEqual(['in/2']);
    expect(await scopesOf(provider, { within: [] })).toEqual([]);
    expect(asked.map(({ tags }) => tags)).toEqual([
      ['omp:under:in'],
      ['omp:scope:in'],
      [],
      [],
      ['omp:under:in'],
      ['omp:scope:in/2', 'omp:under:in'],
      [],
    ]);
    expect(asked.every(({ within }) => within === null)).toBe(true);
  });

  it('reads batches until its page is full', async () => {
    const { provider, asked, add } = await openEmulated();
    const scopes = Array.from({ length: 1_100 }, (_, i) => (i % 500 === 0 ? `in${i}` : 'out'));
    await add(...scopes);
    expect(await scopesOf(provider, { within: ['in*'], limit: 2 })).toEqual(['in1000', 'in500']);
    expect(asked.map(({ limit }) => limit)).toEqual([8, 32, 128, 500]);
    const [last] = await provider.list(listOf('u', { within: ['in*'], limit: 1 }), call);
    expect(await scopesOf(provider, { within: ['in*'], limit: 5, ...(last && { after: last }) })).toEqual([
      'in500',
      'in0',
    ]);
  });
});

describe('search with allowed scopes', () => {
  const found = async (provider: AllMemories, more: Parameters<typeof searchFor>[2]) =>
    (await provider.search(searchFor('u', 'note', more), call)).map(({ memory }) => memory.scope);

  it('reads on until the page is full, and not further', async () => {
    const { provider, asked, add } = await openEmulated();
    await add(...Array.from({ length: 60 }, (_, i) => (i < 2 ? `in${i}` : 'out')));
    expect(await found(provider, { within: ['in*'], limit: 2 })).toEqual(['in1', 'in0']);
    expect(await found(provider, { within: ['in0'], limit: 2 })).toEqual(['in0']);
    expect(await found(provider, { within: ['in*'], scope: 'in1', limit: 2 })).toEqual(['in1']);
    expect(asked.slice(0, 4).map(({ limit, tags }) => [limit, tags])).toEqual([
      [8, []],
      [32, []],
      [128, []],
      [8, ['omp:scope:in0']],
    ]);
  });

  it('rejects instead of returning a partial page at the limit of the provider, and says how to avoid that', async () => {
    const { provider, add } = await openEmulated(({ capabilities }) => ({
      capabilities: { ...capabilities, max_search_results: 30 },
    }));
    await add(...Array.from({ length: 40 }, (_, i) => (i === 0 ? 'in/x' : 'out')));
    const refusal = await found(provider, { within: ['in*'], limit: 1 }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/add a scope/) });
    expect(await found(provider, { within: ['in*'], scope: 'in/', limit: 1 })).toEqual(['in/x']);
  });
});

describe('what is passed through', () => {
  it('an idempotent add, with the scope', async () => {
    const { provider, inner } = await openEmulated();
    const once = { caller: 'c', key: 'k', fingerprint: 'f' };
    const first = await provider.addIdempotent(input('a/b'), once, call);
    expect(first).toMatchObject({ scope: 'a/b', tags: [] });
    expect(await provider.addIdempotent(input('a/b'), once, call)).toEqual(first);
    expect(await provider.get(refTo(first.id), call)).toEqual(first);
    expect((await inner.get(refTo(first.id), call))?.tags).toEqual(['omp:under:a', 'omp:scope:a/b']);
  });

  it('but not the audit log, whose entries would have no scopes', async () => {
    const { audit } = (await openMemory('native')) as Full;
    expect((await openEmulated(() => ({ audit }))).provider.audit).toBeUndefined();
  });
});
