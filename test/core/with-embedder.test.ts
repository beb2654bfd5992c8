import { describe, expect, it } from 'vitest';
import { type Call, OmpError, type Provider, type Vector } from '#contract';
import { withEmbedder } from '../../src/core/with-embedder.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import type { AllMemories } from '../support/memories.ts';
import { auditOf, call, callBy, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

const HYBRID = { mode: 'hybrid', keyword_weight: 0.5 } as const;
const key = { caller: 'c', key: 'k', fingerprint: 'f' };

/** The memory provider with an embedder that notes its texts; `change` alters the provider, `fate` decides on a text. */
const open = async (
  change: (provider: Required<Provider>) => Partial<Provider> = () => ({}),
  fate: (text: string) => Promise<void> | void = () => {},
) => {
  const inner = hashingEmbedder();
  const texts: string[] = [];
  const embedder = {
    ...inner,
    embed: async (given: readonly string[], purpose: 'document' | 'query', by: Call) => {
      texts.push(...given.map((text) => `${purpose} ${text}`));
      for (const text of given) await fate(text);
      return inner.embed(given, purpose, by);
    },
  };
  const provider = await openMemory('native', { embedder, ranking: HYBRID });
  const memories = withEmbedder({ ...provider, ...change(provider) }, embedder, recordingLog()) as AllMemories;
  return { memories, provider, texts };
};

describe('the vectors of a request', () => {
  it('are computed once for all retries of the backend', async () => {
    const again =
      <Args extends readonly unknown[], Result>(verb: (...args: Args) => Promise<Result>) =>
      async (...args: Args) =>
        verb(...args).then(() => verb(...args));
    const { memories, texts } = await open(({ add, search }) => ({ add: again(add), search: again(search) }));
    await memories.add(memoryOf('u', 'green tea'), call);
    const [hit] = await memories.search(searchFor('u', 'green tea'), call);
    expect(hit?.score).toBeGreaterThan(0.99);
    expect(texts).toEqual(['document green tea', 'query green tea']);
  });

  it('are null without an embedder', async () => {
    const asked: unknown[] = [];
    const bare = await openMemory();
    const noted = <Result>(vector: Vector, result: Result): Result => {
      asked.push(vector);
      return result;
    };
    const note: Partial<Provider> = {
      add: (input, vector, by) => noted(vector, bare.add(input, vector, by)),
      update: (ref, patch, vector, by) => noted(vector, bare.update(ref, patch, vector, by)),
      search: (query, by) => noted(query.vector, bare.search(query, by)),
    };
    const memories = withEmbedder({ ...bare, ...note }, undefined, recordingLog()) as AllMemories;
    const { id } = await memories.add(memoryOf('u', 'tea'), call);
    expect(await memories.update(refTo(id), { content: 'green tea' }, call)).toMatchObject({ content: 'green tea' });
    expect(await memories.search(searchFor('u', 'green'), call)).toHaveLength(1);
    expect(asked).toEqual([null, null, null]);
  });

  it('that cannot be computed cause no backend call', async () => {
    const { memories, provider } = await open(undefined, () => {
      throw new OmpError('provider_error', 'down', { provider: 'openai' });
    });
    const { id } = await provider.add(memoryOf('u', 'tea'), null, call);
    for (const pending of [
      memories.add(memoryOf('u', 'x'), call),
      memories.addIdempotent(memoryOf('u', 'x'), key, call),
      memories.update(refTo(id), { content: 'x', tags: ['t'] }, call),
      memories.search(searchFor('u', 'x'), call),
    ]) {
      await expect(pending).rejects.toMatchObject({ provider: 'openai' });
    }
    expect(await memories.list(listOf('u'), call)).toMatchObject([{ id, content: 'tea', tags: [] }]);
    expect(await memories.audit.read(auditOf('u'), call)).toHaveLength(1);
  });
});

describe('an update', () => {
  it('embeds its content only if it changes', async () => {
    const { memories, texts } = await open();
    const { id } = await memories.add(memoryOf('u', 'tea'), call);
    const before = await memories.update(refTo(id), { content: 'tea', tags: ['t'] }, call);
    expect(before).toMatchObject({ content: 'tea', tags: ['t'] });
    expect(await memories.update(refTo(id), { content: 'tea' }, call)).toEqual(before);
    expect(await memories.update(refTo(id), { tags: [] }, call)).toMatchObject({ tags: [] });
    expect(await memories.update(refTo('mem_none'), { content: 'coffee' }, call)).toBeUndefined();
    expect(await memories.update(refTo(id, { users: ['v'] }), { content: 'coffee' }, call)).toBeUndefined();
    expect(texts).toEqual(['document tea']);
    await memories.update(refTo(id), { content: 'coffee' }, call);
    expect(texts).toEqual(['document tea', 'document coffee']);
    expect((await memories.search(searchFor('u', 'coffee'), call))[0]?.score).toBeGreaterThan(0.99);
  });
});

describe('an add with a key', () => {
  it('[Decision 20] embeds nothing if it is repeated or the key was used with another input', async () => {
    const { memories, texts } = await open();
    const first = await memories.addIdempotent(memoryOf('u', 'tea'), key, call);
    expect(await memories.addIdempotent(memoryOf('u', 'tea'), key, call)).toEqual(first);
    const other = memories.addIdempotent(memoryOf('u', 'coffee'), { ...key, fingerprint: 'other' }, call);
    await expect(other).rejects.toMatchObject({ code: 'invalid_request' });
    expect(texts).toEqual(['document tea']);
  });

  it('[Decision 20] that loses a race returns the result of the winner', async () => {
    const { memories, texts } = await open();
    const adding = () => memories.addIdempotent(memoryOf('u', 'tea'), key, call);
    const [first, ...others] = await Promise.all(Array.from({ length: 5 }, adding));
    expect(others).toEqual(Array(4).fill(first));
    expect(await memories.list(listOf('u'), call)).toEqual([first]);
    expect(texts).toHaveLength(5);
  });

  it('[Decision 20] that fails, or is aborted during the embedding, leaves the key unused', async () => {
    let failing = true;
    const gone = new AbortController();
    const { memories } = await open(undefined, (text) => {
      if (text === 'coffee') gone.abort(new Error('gone'));
      else if (failing) throw new OmpError('provider_error', 'down');
    });
    await expect(memories.addIdempotent(memoryOf('u', 'tea'), key, call)).rejects.toThrow('down');
    const given = memories.addIdempotent(memoryOf('u', 'coffee'), key, callBy({}, { signal: gone.signal }));
    await expect(given).rejects.toThrow('gone');
    failing = false;
    const added = await memories.addIdempotent(memoryOf('u', 'tea'), { ...key, fingerprint: 'other' }, call);
    expect(await memories.list(listOf('u'), call)).toEqual([added]);
  });
});
