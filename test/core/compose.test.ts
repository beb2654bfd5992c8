import { describe, expect, it } from 'vitest';
import type { Provider, ProviderCapabilities } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { call, contextOf, listOf, memoryOf, openMemory } from '../support/requests.ts';
import type { FullStore } from '../support/stores.ts';

type Full = Required<Provider>;

/** The memory provider with these capabilities as the gateway uses it, and what reaches its `list` and `add`. */
const composed = async (more: Partial<ProviderCapabilities>) => {
  const inner = (await openMemory('native')) as Full;
  const reached: unknown[] = [];
  const changed: Provider = {
    ...inner,
    capabilities: { ...inner.capabilities, ...more },
    add: (request, by) => {
      const { scope, tags } = request.input;
      reached.push({ scope, tags });
      return inner.add(request, by);
    },
    list: async (query) => {
      reached.push({ scope: query.scope, tags: query.tags });
      return [];
    },
  };
  const provider = compose(changed, contextOf()) as FullStore;
  return { provider, reached };
};
const scoped = memoryOf('u', 'note', { scope: 'a/b', tags: ['t'] });

describe('scopes are', () => {
  it('native on a provider that supports them, with or without tags', async () => {
    for (const tags of [true, false]) {
      const { provider, reached } = await composed({ scopes: 'native', tags });
      await provider.add({ input: scoped }, call);
      await provider.list(listOf('u', { scope: 'a/b' }), call);
      expect(reached).toEqual([
        { scope: 'a/b', tags: ['t'] },
        { scope: 'a/b', tags: [] },
      ]);
      expect(provider.audit).toBeDefined();
    }
  });

  it('emulated with tags on a provider that supports only tags', async () => {
    const { provider, reached } = await composed({ scopes: 'tags', tags: true });
    expect(await provider.add({ input: scoped }, call)).toMatchObject({ scope: 'a/b', tags: ['t'] });
    await provider.list(listOf('u', { scope: 'a/b' }), call);
    expect(reached).toEqual([
      { scope: null, tags: ['t', 'omp:under:a', 'omp:scope:a/b'] },
      { scope: undefined, tags: ['omp:scope:a/b'] },
    ]);
    expect(provider.audit).toBeUndefined();
  });

  it('[Decision 25] rejected where other applications write the tags, with or without tags', async () => {
    const { provider, reached } = await composed({ scopes: 'none', tags: true });
    await expect(provider.add({ input: scoped }, call)).rejects.toMatchObject({ code: 'unsupported_capability' });
    await expect(provider.list(listOf('u', { scope: 'a/b' }), call)).rejects.toMatchObject({
      code: 'unsupported_capability',
    });
    expect(reached).toEqual([]);
    expect(provider.audit).toBeUndefined();
  });
});
