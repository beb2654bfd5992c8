import { expect, it, vi } from 'vitest';
import { NO_LIMITS, OmpError, type Provider, type UserLimits } from '#contract';
import { observedEmbedder } from '../embedding/observed-embedder.ts';
import { call, memoryOf, openMemory, refTo } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';

/** The memory provider with these limits for every user. `embedded`: the texts since it was last asked. */
async function open(own: Partial<UserLimits>) {
  const { embedder, batches } = observedEmbedder();
  const memory = await openMemory('native', { embedder });
  const userUsage = vi.fn(memory.userUsage);
  const provider: Provider = { ...memory, userUsage };
  const store = storeOf(provider, embedder);
  const limits = () => ({ ...NO_LIMITS, ...own });
  const add = (user_id: string, content: string, key?: string) => {
    const requestKey = key === undefined ? undefined : { caller: 'c', key, fingerprint: 'f' };
    return store.add({ input: memoryOf(user_id, content), key: requestKey, limits }, call);
  };
  const embedded = () => batches.splice(0).flatMap(({ texts }) => texts);
  return { store, memory, limits, add, embedded, userUsage };
}
const full = expect.objectContaining({ limit: expect.anything() });

it('[Decision 59] only the first add that a full user has rejected is embedded', async () => {
  const { memory, add, embedded, userUsage } = await open({ memories: 1 });
  const { id } = await add('ana', 'one', 'k');
  await expect(add('ana', 'two')).rejects.toEqual(full);
  expect(userUsage).not.toHaveBeenCalled();
  expect(embedded()).toEqual(['one', 'two']);
  await expect(add('ana', 'three')).rejects.toEqual(full);
  await add('ben', 'of another user');
  expect((await add('ana', 'one', 'k')).id).toBe(id);
  expect(embedded()).toEqual(['of another user']);
  // What fits again is added.
  await memory.delete(refTo(id), call);
  await add('ana', 'four');
  await expect(add('ana', 'five')).rejects.toEqual(full);
  expect(embedded()).toEqual(['four']);
});

it('[Decision 59] of a batch, only what fits is embedded for a user who was full, in order', async () => {
  const { store, add, embedded, limits } = await open({ bytes: 10 });
  await add('ana', '12345');
  const batch = async (...contents: string[]) => {
    const inputs = [...contents.map((content) => memoryOf('ana', content)), memoryOf('ben', 'tea')];
    const outcomes = await store.batch({ inputs, limits }, call);
    return outcomes.map((outcome) => (outcome instanceof OmpError ? outcome.limit : outcome?.content));
  };
  expect(await batch('too long')).toEqual(['bytes', 'tea']);
  embedded();
  expect(await batch('too long', '123', 'more', '45')).toEqual(['bytes', '123', 'bytes', '45', 'tea']);
  expect(embedded()).toEqual(['123', '45', 'tea']);
});

it('[Decision 59] a content that a full user may not have is not embedded, unless it was changed meanwhile', async () => {
  const { store, memory, add, embedded, limits, userUsage } = await open({ bytes: 5 });
  const { id } = await add('ana', '123');
  const change = (content: string) => store.update({ ref: refTo(id), patch: { content }, limits }, call);
  await expect(change('too long')).rejects.toEqual(full);
  embedded();
  await expect(change('longer than that')).rejects.toEqual(full);
  expect(embedded()).toEqual([]);
  const { content: _, ...rest } = memoryOf('ana', '');
  userUsage.mockImplementationOnce(async (request, by) => {
    await memory.update({ ref: refTo(id), patch: { ...rest, content: '12345' }, vector: null }, by);
    return memory.userUsage(request, by);
  });
  expect((await change('6789'))?.content).toBe('6789');
  expect(embedded()).toEqual(['6789']);
});
