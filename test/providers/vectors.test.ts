import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { openProvider } from '../../src/registry.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, contextOf, memoryOf, refTo } from '../support/requests.ts';
import { makeDataDir } from '../support/subject.ts';

const embedder = hashingEmbedder();
let data_dir: string;
let pinecone: Pinecone;
beforeAll(async () => {
  [data_dir, pinecone] = await Promise.all([makeDataDir(), startPinecone()]);
});
afterAll(async () => {
  await rm(data_dir, { recursive: true, force: true });
  await pinecone.close();
});

const vectorOf = async (text: string) => (await embedder.embed([text], 'document', call))[0] as Float32Array;
const cosine = (found: Float32Array | undefined, due: Float32Array): number => {
  const one = found ?? new Float32Array(due.length);
  const dot = due.reduce((sum, component, i) => sum + component * (one[i] as number), 0);
  return dot / Math.hypot(...one) / Math.hypot(...due);
};

describe.each(['memory', 'postgres', 'pinecone'] as const)('the stored vectors of %s', (name) => {
  let provider: Required<Provider>;
  beforeAll(async () => {
    const options = name === 'pinecone' ? { api_key: 'test', index_host: pinecone.url } : {};
    const ranking = { mode: 'hybrid', keyword_weight: 0.5 } as const;
    provider = (await openProvider(name, options, contextOf({ embedder, ranking, data_dir }))) as Required<Provider>;
  });
  afterAll(() => provider?.close());
  const add = async (user_id: string, content: string, scope: string | null = null) =>
    (await provider.add({ input: memoryOf(user_id, content, { scope }), vector: await vectorOf(content) }, call))
      ?.id as string;

  it('[Decision 42] are those of the present contents', async () => {
    const [tea, coffee, gone] = await Promise.all(['tea', 'coffee', 'gone'].map((content) => add('ana', content)));
    const ids = [tea, coffee, gone, 'mem_unknown'] as string[];
    await provider.update(
      { ref: refTo(coffee as string), patch: { content: 'cocoa' }, vector: await vectorOf('cocoa') },
      call,
    );
    await provider.delete(refTo(gone as string), call);
    const found = await provider.vectorsOf({ user_id: 'ana', within: null, ids }, call);
    expect([...found.keys()].sort()).toEqual([tea, coffee].sort());
    expect(cosine(found.get(tea as string), await vectorOf('tea'))).toBeCloseTo(1, 5);
    expect(cosine(found.get(coffee as string), await vectorOf('cocoa'))).toBeCloseTo(1, 5);
    expect(await provider.vectorsOf({ user_id: 'ana', within: null, ids: [] }, call)).toEqual(new Map());
  });

  it('[Decision 42] are those of the user and of the allowed scopes', async () => {
    const native = provider.capabilities.scopes === 'native';
    const ids = [await add('ben', 'a', native ? 'a/b' : null), await add('ben', 'c', native ? 'c' : null)];
    const keys = async (user_id: string, within: string[] | null) =>
      [...(await provider.vectorsOf({ user_id, within, ids }, call)).keys()].sort();
    expect(await keys('ben', null)).toEqual([...ids].sort());
    expect(await keys('cleo', null)).toEqual([]);
    if (native) expect(await keys('ben', ['a/*'])).toEqual([ids[0]]);
  });
});
