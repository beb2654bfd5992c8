import { describe, expect, it } from 'vitest';
import type { Provider, ProviderCapabilities } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { call, contextOf, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';
import type { FullStore } from '../support/stores.ts';

type Full = Required<Provider>;

/** The memory provider with these capabilities as the gateway uses it, and what reaches its `list` and `add`. */
const composed = async (more: Partial<ProviderCapabilities>, check: Provider['check'] = () => {}) => {
  const inner = (await openMemory('native')) as Full;
  const reached: unknown[] = [];
  const changed: Provider = {
    ...inner,
    capabilities: { ...inner.capabilities, ...more },
    check,
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
      for (const member of ['audit', 'changes', 'webhooks'] as const) expect(provider[member]).toBeDefined();
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
    // No part of the log.
    for (const member of ['audit', 'changes', 'webhooks'] as const) expect(provider[member]).toBeUndefined();
  });

  it('[Decision 25] rejected where other applications write the tags, with or without tags', async () => {
    const { provider, reached } = await composed({ scopes: 'none', tags: true });
    await expect(provider.add({ input: scoped }, call)).rejects.toMatchObject({ code: 'unsupported_capability' });
    await expect(provider.list(listOf('u', { scope: 'a/b' }), call)).rejects.toMatchObject({
      code: 'unsupported_capability',
    });
    expect(reached).toEqual([]);
    for (const member of ['audit', 'changes', 'webhooks'] as const) expect(provider[member]).toBeUndefined();
  });
});

describe('a provider without a check', () => {
  it.each([
    ['tags', { tags: false }, { tags: ['t'] }],
    ['supersedes', { supports_supersession: false }, { supersedes: ['mem_a'] }],
  ])('[Decision 50] gets no %s that it does not declare', async (field, capabilities, fields) => {
    const memory = await openMemory('native');
    const { check: _, ...unchecked } = { ...memory, capabilities: { ...memory.capabilities, ...capabilities } };
    const provider = compose(unchecked, contextOf()) as FullStore;
    const rejected = { code: 'unsupported_capability', message: `${field}: the provider does not support ${field}` };
    await expect(provider.add({ input: memoryOf('u', 'note', fields) }, call)).rejects.toMatchObject(rejected);
    const { id } = await provider.add({ input: memoryOf('u', 'note') }, call);
    await expect(provider.update({ ref: refTo(id), patch: fields }, call)).rejects.toMatchObject(rejected);
    const batch = await provider.batch({ inputs: [memoryOf('u', 'note', fields), memoryOf('u', 'note')] }, call);
    expect(batch).toMatchObject([rejected, { content: 'note' }]);
    if (!('tags' in fields)) return;
    await expect(provider.list(listOf('u', fields), call)).rejects.toMatchObject(rejected);
    await expect(provider.search(searchFor('u', 'note', fields), call)).rejects.toMatchObject(rejected);
  });
});
