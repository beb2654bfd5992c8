import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Call, type Memory, OmpError, type Provider, type Vector } from '#contract';
import { UNPROTECTED } from '../../src/core/telemetry.ts';
import { withEmbedder } from '../../src/core/with-embedder.ts';
import { withGuard } from '../../src/core/with-guard.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { auditOf, call, listOf, memoryOf, openMemory, refTo, searchFor } from '../support/requests.ts';
import type { FullStore } from '../support/stores.ts';
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
  const memories = withEmbedder({ ...provider, ...change(provider) }, embedder, recordingLog()) as FullStore;
  return { memories, provider, texts };
};

describe('the vectors of a request', () => {
  it('are computed once for all retries of the backend', async () => {
    const again =
      <Args extends readonly unknown[], Result>(verb: (...args: Args) => Promise<Result>) =>
      async (...args: Args) =>
        verb(...args).then(() => verb(...args));
    const { memories, texts } = await open(({ add, search }) => ({ add: again(add), search: again(search) }));
    await memories.add({ input: memoryOf('u', 'green tea') }, call);
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
      add: (request, by) => noted(request.vector, bare.add(request, by)),
      update: (request, by) => noted(request.vector, bare.update(request, by)),
      search: (query, by) => noted(query.vector, bare.search(query, by)),
    };
    const memories = withEmbedder({ ...bare, ...note }, undefined, recordingLog()) as FullStore;
    const { id } = await memories.add({ input: memoryOf('u', 'tea') }, call);
    expect(await memories.update({ ref: refTo(id), patch: { content: 'green tea' } }, call)).toMatchObject({
      content: 'green tea',
    });
    expect(await memories.search(searchFor('u', 'green'), call)).toHaveLength(1);
    expect(asked).toEqual([null, null, null]);
  });

  it('are not computed for what the provider rejects', async () => {
    const rejected = new OmpError('unsupported_capability', 'confidence: the table has no column for this');
    const { memories, provider, texts } = await open(() => ({
      check(given) {
        if (given.confidence != null || given.scope != null) throw rejected;
      },
    }));
    const { id } = (await provider.add({ input: memoryOf('u', 'tea'), vector: null }, call)) as Memory;
    for (const pending of [
      memories.add({ input: memoryOf('u', 'x', { confidence: 1 }) }, call),
      memories.add({ input: memoryOf('u', 'x', { confidence: 1 }), key }, call),
      memories.update({ ref: refTo(id), patch: { content: 'x', confidence: 1 } }, call),
      memories.search(searchFor('u', 'x', { scope: 'a' }), call),
    ]) {
      await expect(pending).rejects.toBe(rejected);
    }
    expect(texts).toEqual([]);
  });

  it('[Decision 28] are not computed while the circuit breaker of the backend is open', async () => {
    const open502 = new OmpError('provider_error', 'memory does not answer', { provider: 'memory', retryAfter: 1 });
    const requireClosed = () => {
      throw open502;
    };
    const { memories, texts } = await open((provider) => withGuard(provider, { ...UNPROTECTED, requireClosed }));
    await expect(memories.add({ input: memoryOf('u', 'x') }, call)).rejects.toBe(open502);
    await expect(memories.search(searchFor('u', 'x'), call)).rejects.toBe(open502);
    expect(texts).toEqual([]);
  });

  it('that cannot be computed cause no backend call', async () => {
    const { memories, provider } = await open(undefined, () => {
      throw new OmpError('provider_error', 'down', { provider: 'openai' });
    });
    const { id } = (await provider.add({ input: memoryOf('u', 'tea'), vector: null }, call)) as Memory;
    for (const pending of [
      memories.add({ input: memoryOf('u', 'x') }, call),
      memories.add({ input: memoryOf('u', 'x'), key }, call),
      memories.update({ ref: refTo(id), patch: { content: 'x', tags: ['t'] } }, call),
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
    const { id } = await memories.add({ input: memoryOf('u', 'tea') }, call);
    const before = await memories.update({ ref: refTo(id), patch: { content: 'tea', tags: ['t'] } }, call);
    expect(before).toMatchObject({ content: 'tea', tags: ['t'] });
    expect(await memories.update({ ref: refTo(id), patch: { content: 'tea' } }, call)).toEqual(before);
    expect(await memories.update({ ref: refTo(id), patch: { tags: [] } }, call)).toMatchObject({ tags: [] });
    expect(await memories.update({ ref: refTo('mem_none'), patch: { content: 'coffee' } }, call)).toBeUndefined();
    expect(
      await memories.update({ ref: refTo(id, { users: ['v'] }), patch: { content: 'coffee' } }, call),
    ).toBeUndefined();
    expect(texts).toEqual(['document tea']);
    await memories.update({ ref: refTo(id), patch: { content: 'coffee' } }, call);
    expect(texts).toEqual(['document tea', 'document coffee']);
    expect((await memories.search(searchFor('u', 'coffee'), call))[0]?.score).toBeGreaterThan(0.99);
  });
});

describe('an update that repeats the content', () => {
  it('sets it again if another request changes it meanwhile', async () => {
    const { memories, provider, texts } = await open(({ get, update }) => ({
      async get(ref, by) {
        const found = await get(ref, by);
        if (found?.content === 'tea') await update({ ref, patch: { content: 'coffee' }, vector: null }, by);
        return found;
      },
    }));
    const { id } = (await provider.add({ input: memoryOf('u', 'tea'), vector: null }, call)) as Memory;
    const updated = await memories.update({ ref: refTo(id), patch: { content: 'tea', tags: ['t'] } }, call);
    expect(updated).toMatchObject({ content: 'tea', tags: ['t'] });
    expect(texts).toEqual(['document tea']);
  });
});

describe('an update of a version', () => {
  it('[Decision 36] embeds nothing for another version', async () => {
    const { memories, texts } = await open();
    const { id } = await memories.add({ input: memoryOf('u', 'tea') }, call);
    const stale = memories.update(
      { ref: refTo(id, { versions: ['2001-01-01T00:00:00.000Z'] }), patch: { content: 'x' } },
      call,
    );
    await expect(stale).rejects.toMatchObject({ code: 'invalid_request', version: expect.any(String) });
    expect(texts).toEqual(['document tea']);
  });

  it('[Decision 36] that takes two steps does not fail because of its own first', async () => {
    onTestFinished(() => void vi.useRealTimers());
    const { memories, provider } = await open(({ get, update }) => ({
      async get(ref, by) {
        const found = await get(ref, by);
        if (found?.content === 'tea')
          await update({ ref: { ...ref, versions: undefined }, patch: { content: 'coffee' }, vector: null }, by);
        return found;
      },
    }));
    vi.useFakeTimers({ toFake: ['Date'] });
    const { id, updated_at } = (await provider.add({ input: memoryOf('u', 'tea'), vector: null }, call)) as Memory;
    // Of the add, and of the change to coffee.
    const versions = [updated_at, new Date(Date.parse(updated_at) + 1).toISOString()];
    const updated = await memories.update(
      { ref: refTo(id, { versions }), patch: { content: 'tea', tags: ['t'] } },
      call,
    );
    expect(updated).toMatchObject({ content: 'tea', tags: ['t'] });
  });
});

describe('an add with a key', () => {
  it('[Decision 20] embeds nothing if it is repeated or the key was used with another input', async () => {
    const { memories, texts } = await open();
    const first = await memories.add({ input: memoryOf('u', 'tea'), key }, call);
    expect(await memories.add({ input: memoryOf('u', 'tea'), key }, call)).toEqual(first);
    const other = memories.add({ input: memoryOf('u', 'coffee'), key: { ...key, fingerprint: 'other' } }, call);
    await expect(other).rejects.toMatchObject({ code: 'invalid_request' });
    expect(texts).toEqual(['document tea']);
  });

  it('[Decision 20] that loses a race returns the result of the winner', async () => {
    const { memories, texts } = await open();
    const adding = () => memories.add({ input: memoryOf('u', 'tea'), key }, call);
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
    await expect(memories.add({ input: memoryOf('u', 'tea'), key }, call)).rejects.toThrow('down');
    const given = memories.add({ input: memoryOf('u', 'coffee'), key }, callOf(gone.signal));
    await expect(given).rejects.toThrow('gone');
    failing = false;
    const added = await memories.add({ input: memoryOf('u', 'tea'), key: { ...key, fingerprint: 'other' } }, call);
    expect(await memories.list(listOf('u'), call)).toEqual([added]);
  });
});

describe('a batch', () => {
  const inputs = ['tea', 'coffee', 'water'].map((content) => memoryOf('u', content));
  const down = new OmpError('provider_error', 'down');
  const listed = async ({ list }: FullStore) => (await list(listOf('u'), call)).map(({ content }) => content).reverse();
  /** A provider that has no batches of its own. */
  type Add = Required<Provider>['add'];
  const openSingle = async (add: (inner: Add) => Add) => {
    const { batch: _, ...single } = await openMemory();
    return withEmbedder({ ...single, add: add(single.add) }, undefined, recordingLog()) as FullStore;
  };
  /** Fails on coffee. */
  const failingWith =
    (error: OmpError) =>
    (add: Add): Add =>
    async (request, by) => {
      if (request.input.content === 'coffee') throw error;
      return add(request, by);
    };

  it('[Decision 35] embeds all its contents at once, and none that is repeated or rejected', async () => {
    let calls = 0;
    const embedder = hashingEmbedder();
    const provider = await openMemory('native', { embedder, ranking: HYBRID });
    const embed: typeof embedder.embed = (texts, purpose, by) => {
      calls++;
      expect(texts).toEqual(['tea', 'coffee', 'water']);
      return embedder.embed(texts, purpose, by);
    };
    const memories = withEmbedder(provider, { ...embedder, embed }, recordingLog()) as FullStore;
    const first = await memories.batch({ inputs: [...inputs, undefined], key }, call);
    expect(await memories.batch({ inputs: [...inputs, undefined], key }, call)).toEqual(first);
    await expect(memories.batch({ inputs, key: { ...key, fingerprint: 'g' } }, call)).rejects.toThrow(
      'Idempotency-Key',
    );
    expect(calls).toBe(1);
    expect(await listed(memories)).toEqual(['tea', 'coffee', 'water']);
  });

  it('[Decision 35] a text that the embedder rejects has its error, and the others are added', async () => {
    const tooLong = new OmpError('invalid_request', 'too long');
    const { memories } = await open(undefined, (text) => {
      if (text === 'coffee') throw tooLong;
    });
    const [tea, coffee, water] = await memories.batch({ inputs }, call);
    expect([tea, coffee, water]).toMatchObject([{ content: 'tea' }, tooLong, { content: 'water' }]);
    expect(await listed(memories)).toEqual(['tea', 'water']);
  });

  it('[Decision 35] adds nothing if the embedder or the backend fails', async () => {
    const { memories } = await open(undefined, (text) => {
      if (text === 'coffee') throw down;
    });
    await expect(memories.batch({ inputs }, call)).rejects.toBe(down);
    expect(await listed(memories)).toEqual([]);
    const { memories: failing } = await open(() => ({ batch: async () => Promise.reject(down) }));
    await expect(failing.batch({ inputs, key }, call)).rejects.toBe(down);
  });

  it('[Decision 35] without batches of the backend, adds one by one until it fails', async () => {
    const rejected = new OmpError('unsupported_capability', 'not this one');
    const one = await openSingle(failingWith(rejected));
    expect(await one.batch({ inputs }, call)).toMatchObject([{ content: 'tea' }, rejected, { content: 'water' }]);
    const other = await openSingle(failingWith(down));
    expect(await other.batch({ inputs }, call)).toMatchObject([{ content: 'tea' }, down, down]);
    expect(await listed(other)).toEqual(['tea']);
    await expect(other.batch({ inputs: inputs.slice(1) }, call)).rejects.toBe(down);
  });
});
