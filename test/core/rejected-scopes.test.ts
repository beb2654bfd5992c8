import { describe, expect, it } from 'vitest';
import type { MemoryPatch, NewMemory, Provider, UpdateRequest } from '#contract';
import { rejectScopes } from '../../src/core/emulated-scopes.ts';
import { call, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';
import { type FullStore, storeOf } from '../support/stores.ts';

type Full = Required<Provider>;

/** The memory provider as one that has no scopes, which tells what it is asked. */
const open = async (change: Partial<Provider> = {}) => {
  const memory = (await openMemory('none')) as Full;
  const inner: Full = { ...memory, capabilities: { ...memory.capabilities, tags: false }, ...change };
  const asked: [verb: string, argument: unknown][] = [];
  const note =
    <Arguments extends readonly [unknown, ...unknown[]], Result>(verb: string, ask: (...given: Arguments) => Result) =>
    (...given: Arguments): Result => {
      asked.push([verb, given[0]]);
      return ask(...given);
    };
  const provider = storeOf(
    rejectScopes({
      ...inner,
      add: note('add', inner.add),
      keyUse: note('key use', inner.keyUse),
      get: note('get', inner.get),
      update: note('update', inner.update),
      delete: note('delete', inner.delete),
      list: note('list', inner.list),
      search: note('search', inner.search),
    }),
  );
  return { provider, inner: storeOf(inner), bare: inner, asked };
};
const once = { caller: 'c', key: 'k', fingerprint: 'f' };
const input = (more: Partial<NewMemory> = {}) => memoryOf('u', 'note', more);

describe('a provider without scopes and tags', () => {
  const scopedPatch: MemoryPatch = { content: 'changed', scope: 'a' };
  it.each<[string, (memories: FullStore, id: string) => Promise<unknown>]>([
    ['add', ({ add }) => add({ input: input({ scope: 'a' }) }, call)],
    ['add once', ({ add }) => add({ input: input({ scope: 'a' }), key: once }, call)],
    ['update', ({ update }, id) => update({ ref: refTo(id), patch: scopedPatch }, call)],
    ['list', ({ list }) => list(listOf('u', { scope: '*' }), call)],
    ['search', ({ search }) => search(searchFor('u', 'note', { scope: 'a' }), call)],
    ['search all scopes for', ({ search }) => search(searchFor('u', 'note', { scope: '' }), call)],
  ])('is not asked to %s anything where there is a scope: the caller is told', async (_, perform) => {
    const { provider, inner, asked } = await open();
    const { id } = await inner.add({ input: input() }, call);
    await expect(perform(provider, id)).rejects.toMatchObject({
      code: 'unsupported_capability',
      message: 'scope: the provider does not support scopes',
      provider: 'memory',
    });
    expect(asked.filter(([verb]) => verb !== 'key use')).toEqual([]);
    expect(await inner.list(listOf('u'), call)).toMatchObject([{ id, content: 'note' }]);
  });

  it('is not called for callers with restricted scopes, who find and change nothing', async () => {
    const { provider, inner, asked } = await open();
    const { id } = await inner.add({ input: input() }, call);
    for (const within of [['*'], ['a', 'b/*'], []]) {
      const ref = refTo(id, { within });
      expect(await provider.get(ref, call)).toBeUndefined();
      expect(await provider.update({ ref, patch: { content: 'changed' } }, call)).toBeUndefined();
      expect(await provider.delete(ref, call)).toBe(false);
      expect(await provider.list(listOf('u', { within }), call)).toEqual([]);
      expect(await provider.search(searchFor('u', 'note', { within }), call)).toEqual([]);
      // A patch with a scope is refused before it is looked at whose record it is.
      await expect(provider.update({ ref, patch: { scope: 'a' } }, call)).rejects.toMatchObject({
        code: 'unsupported_capability',
      });
    }
    expect(asked).toEqual([]);
    expect(await inner.get(refTo(id), call)).toMatchObject({ content: 'note' });
  });

  it('serves all other callers unchanged', async () => {
    const { provider, asked } = await open();
    const first = await provider.add({ input: input() }, call);
    const second = await provider.add({ input: input({ confidence: 0.5 }), key: once }, call);
    expect(await provider.add({ input: input({ confidence: 0.5 }), key: once }, call)).toEqual(second);
    expect(await provider.get(refTo(first.id), call)).toEqual(first);
    expect(await provider.get(refTo(first.id, { users: ['v'] }), call)).toBeUndefined();
    expect(await provider.update({ ref: refTo(first.id), patch: { content: 'coffee' } }, call)).toMatchObject({
      content: 'coffee',
    });
    expect((await provider.list(listOf('u', { limit: 1 }), call)).map(({ id }) => id)).toEqual([second.id]);
    expect((await provider.search(searchFor('u', 'coffee'), call)).map(({ memory }) => memory.id)).toEqual([first.id]);
    expect(await provider.delete(refTo(first.id), call)).toBe(true);
    expect(asked.map(([verb]) => verb)).toEqual(
      ['add', 'key use', 'add', 'key use', 'get', 'get', 'update', 'list', 'search', 'delete'], //
    );
    // Neither a scope nor a bound on scopes is ever passed on.
    const queries = asked.map(([verb, request]) => [verb, (request as Partial<UpdateRequest>).ref ?? request] as const);
    for (const [verb, query] of queries.slice(4)) expect(query, verb).toMatchObject({ within: null });
    for (const [verb, query] of queries.slice(7)) expect(query, verb).not.toHaveProperty('scope');
  });

  it('[Decision 50] counts and erases memories, for callers of all scopes', async () => {
    const provider = storeOf(rejectScopes(await openMemory('native')));
    const { updated_at: last_write } = await provider.add({ input: input() }, call);
    const seen = async (within: string[] | null) => [
      (await provider.users({ users: null, within, limit: 10 }, call)).items,
      (await provider.userStats({ user_id: 'u', within, limit: 10 }, call)).count,
    ];
    expect(await seen(null)).toEqual([[{ user_id: 'u', count: 1, last_write }], 1]);
    expect(await seen(['*'])).toEqual([[], 0]);
    expect(await provider.erase({ user_id: 'u' }, call)).toMatchObject([{ removed: { memories: 1 } }]);
    expect(await seen(null)).toEqual([[], 0]);
  });

  it('gets no missing verb and no audit log, whose entries would have scopes', async () => {
    const { bare: inner } = await open();
    const { name, capabilities, get, ping, close } = inner;
    const { audit } = (await openMemory('native')) as Full;
    const least = rejectScopes({ name, capabilities, get, ping, close, audit });
    const { add, keyUse, update, delete: remove, list, search, audit: log, keys } = least;
    expect([add, keyUse, update, remove, list, search, log, keys]).toEqual(Array(8).fill(undefined));
    expect(least).toMatchObject({ name, capabilities, ping, close });
  });
});
