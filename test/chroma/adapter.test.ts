import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ChromaClient } from 'chromadb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Memory, Provider } from '#contract';
import chroma from '../../providers/collections/chroma.ts';
import { freshUser, recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { type Chroma, NO_CHROMA, openChroma, openProvider } from './start.ts';

const embedder = hashingEmbedder();
const vectorOf = async (text: string) => (await embedder.embed([text], 'document', call))[0] as Float32Array;

describe.skipIf(NO_CHROMA !== '')(`the adapter of Chroma${NO_CHROMA && ` (${NO_CHROMA})`}`, () => {
  let server: Chroma;
  beforeAll(async () => {
    server = await openChroma();
  });
  afterAll(() => server?.close());

  const client = () => {
    const { hostname: host, port } = new URL(server.url);
    return new ChromaClient({ host, port: Number(port) });
  };
  /** A collection of its own. */
  const open = async (options: object = {}) => {
    const collection = `c-${randomUUID()}`;
    return { collection, provider: await openProvider({ url: server.url, collection, ...options }) };
  };
  const add = async (provider: Provider, contents: readonly string[], user_id = freshUser()): Promise<Memory[]> => {
    const items = contents.map(async (content) => ({
      input: memoryOf(user_id, content, { tags: ['a', 'b'] }),
      vector: await vectorOf(content),
    }));
    return (await provider.batch?.({ items: await Promise.all(items) }, call)) as Memory[];
  };
  const doctor = async (options: object, of: object = embedder) =>
    (await chroma.diagnose?.(options, { embedder: of, data_dir: '.', log: recordingLog() } as never)) ?? [];

  it('[SPEC Errors provider_error] a server that is down is told, also to the circuit breaker, until it answers again', async () => {
    const { provider } = await open();
    const [memory] = (await add(provider, ['tea'])) as [Memory];
    await server.kill();
    const down = { code: 'provider_error', message: 'Chroma cannot be reached', down: true, retry: 'reads' };
    const away = [
      () => provider.get(refTo(memory.id), call),
      () => provider.delete(refTo(memory.id), call),
      () => add(provider, ['coffee']),
      () => provider.ping(call),
      () => open(),
    ];
    for (const work of away) await expect(work()).rejects.toMatchObject(down);
    expect(await doctor({ url: server.url })).toMatchObject([{ level: 'problem', message: down.message }]);
    await server.start();
    expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('[SPEC Errors provider_error] what is no answer of Chroma is told', async () => {
    const proxy = createServer((_, response) => response.end('<html>sign in</html>')).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onTestFinished(() => void proxy.close());
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    await expect(open({ url })).rejects.toMatchObject({
      message: 'Chroma, or what stands before it, answered what cannot be read',
      ...{ retry: 'reads', down: true },
    });
  });

  it('[SPEC Errors provider_error] a rejection does not count as down, and no text of Chroma reaches the log', async () => {
    const { provider, collection } = await open();
    await add(provider, ['tea']);
    const rejected = await provider.search(searchFor('ana', 'tea', { vector: new Float32Array(3).fill(1) }), call).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(rejected).toMatchObject({ code: 'provider_error', down: false, retry: undefined });
    expect((rejected as Error).cause).toMatchObject({ message: expect.stringMatching(/^\w+$/) });
    await client().deleteCollection({ name: collection });
    await expect(add(provider, ['tea'])).rejects.toMatchObject({
      message: 'Chroma has no such collection, database or tenant',
      down: false,
    });
  });

  it('[SPEC Errors payload_too_large] what fits into no request is too large', async () => {
    const { provider } = await open();
    const [tooLarge] = await add(provider, ['x'.repeat(7 * 1024 * 1024)]);
    expect(tooLarge).toMatchObject({ code: 'payload_too_large' });
  });

  it('[Decision 64] a batch of the largest size that is taken fits into a request', async () => {
    const { provider } = await open();
    const text = '"\\'.repeat(512 * 1024);
    const added = await add(
      provider,
      Array.from({ length: 6 }, () => text),
    );
    expect(added.map(({ content }) => content === text)).toEqual(added.map(() => true));
  });

  it.each([
    [{ tenant: 'nobody' }, 'Chroma has no such collection, database or tenant'],
    [{ database: 'nothing' }, 'Chroma has no such collection, database or tenant'],
    [{ url: 'secret' }, 'the provider chroma rejects its options'],
    [{ collection: 'a' }, 'the provider chroma rejects its options'],
  ])('[Decision 64] %j stops the start with what helps', async (options, message) => {
    await expect(open(options)).rejects.toThrow(message);
  });

  it('[Decision 64] a collection of others, of another measure or model stops the start, and doctor says so', async () => {
    const { collection } = await open();
    const options = { url: server.url, collection };
    expect(await doctor(options)).not.toContainEqual(expect.objectContaining({ level: 'problem' }));
    const other = { ...embedder, model: 'another' };
    await expect(openProvider(options, other)).rejects.toThrow(`are from "${embedder.model}", not from "another"`);
    await expect(openProvider(options, hashingEmbedder(32))).rejects.toThrow('has vectors of 64 dimensions');
    expect(await doctor(options, other)).toContainEqual(
      expect.objectContaining({ area: 'embedding', level: 'problem' }),
    );

    await client().createCollection({ name: 'foreign', embeddingFunction: null });
    await expect(open({ collection: 'foreign' })).rejects.toThrow(
      'the collection "foreign" was not made by the gateway; name another one by OMP_CHROMA_COLLECTION',
    );
    const metadata = { omp_dimensions: 64 };
    await client().createCollection({ name: 'squared', embeddingFunction: null, metadata });
    await expect(open({ collection: 'squared' })).rejects.toThrow('compares vectors by l2, not by cosine');
  });

  it('[Decision 7] an update leaves nothing of what it replaces, though Chroma merges', async () => {
    const { provider } = await open();
    const [added] = (await add(provider, ['tea'])) as [Memory];
    const patch = { tags: [], extensions: { 'x-a': 1 } };
    await provider.update({ ref: refTo(added.id), patch, vector: null }, call);
    expect(await provider.get(refTo(added.id), call)).toMatchObject({ tags: [], extensions: { 'x-a': 1 } });
    await provider.update({ ref: refTo(added.id), patch: { extensions: { 'x-a': null } }, vector: null }, call);
    expect((await provider.get(refTo(added.id), call))?.extensions).not.toHaveProperty('x-a');
  });

  it('[SPEC GET /memories/search order] equal scores are newest first, however many there are, and none is missing', async () => {
    const { provider } = await open();
    const user_id = freshUser();
    const added: Memory[] = [];
    for (let batch = 0; batch < 3; batch++) {
      added.push(
        ...(await add(
          provider,
          Array.from({ length: 100 }, () => 'likes tea'),
          user_id,
        )),
      );
    }
    await add(provider, ['likes tea']);
    const newest = added
      .map(({ id }) => id)
      .sort()
      .reverse();
    for (const limit of [1, 60, 120]) {
      const hits = await provider.search(searchFor(user_id, '', { limit, vector: await vectorOf('likes tea') }), call);
      expect(hits.map(({ memory }) => memory.id)).toEqual(newest.slice(0, limit));
    }
  });
});
