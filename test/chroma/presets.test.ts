import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Chroma } from '../../examples/provider-chroma/test/chroma-server.ts';
import { expectError } from '../support/expect-error.ts';
import { openGateway, type Subject } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { chromaClient, chromaModule, NO_CHROMA, openChroma } from './start.ts';

interface LangchainStore {
  addDocuments(documents: readonly object[], options: { ids: readonly string[] }): Promise<unknown>;
  similaritySearch(query: string, k: number, filter: object): Promise<{ id?: string; pageContent: string }[]>;
}

const LANGCHAIN = new URL(
  '../mapped-libraries/node_modules/@langchain/community/dist/vectorstores/chroma.js',
  import.meta.url,
);
const NO_LANGCHAIN = existsSync(LANGCHAIN) ? '' : 'npm ci --prefix test/mapped-libraries';

const embedder = hashingEmbedder();
const vectorsOf = async (texts: readonly string[]) =>
  (await embedder.embed(texts, 'document', call)).map((vector) => [...vector]);

const TEXTS = ['likes green tea', 'lives in Oslo', 'likes tea and cake', 'plays the piano'];

describe.skipIf(NO_CHROMA !== '')(`collections of libraries${NO_CHROMA && ` (${NO_CHROMA})`}`, () => {
  let chroma: Chroma & { close(): Promise<void> };
  const opened: Subject[] = [];
  beforeAll(async () => {
    chroma = await openChroma();
  });
  afterAll(async () => {
    for (const subject of opened) await subject.close();
    await chroma?.close();
  });
  const gatewayOn = async (options: object): Promise<Subject> => {
    const provider = await chromaModule();
    const subject = await openGateway((context) => provider.open({ url: chroma.url, ...options }, context), {
      mode: 'vector',
    });
    opened.push(subject);
    return subject;
  };
  /** Ids of a user's list, in pages of two. */
  const listed = async ({ client }: Subject, user_id: string): Promise<string[]> => {
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await client.list({ user_id, limit: 2, ...(cursor && { cursor }) });
      ids.push(...page.items.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    return ids;
  };
  const expectReadOnly = async ({ client, capabilities }: Subject, id: string) => {
    expect(capabilities.verbs.toSorted()).toEqual(['context', 'get', 'list', 'search']);
    expect(capabilities.features.scopes).toBe('none');
    for (const [method, path, body] of [
      ['POST', '/memories', { user_id: 'ana', content: 'tea' }],
      ['PATCH', client.byId(id), { content: 'tea' }],
      ['DELETE', client.byId(id), undefined],
    ] as const) {
      expectError(await client.tell(method, path, body), 'unsupported_capability');
    }
  };

  it('[Decision 50] reads what LangChain wrote, ranked as LangChain ranks it', async ({ skip }) => {
    skip(NO_LANGCHAIN !== '', NO_LANGCHAIN);
    const { Chroma } = (await import(LANGCHAIN.href)) as {
      Chroma: new (embeddings: object, options: object) => LangchainStore;
    };
    const embeddings = {
      embedDocuments: vectorsOf,
      embedQuery: async (text: string) => (await vectorsOf([text]))[0],
    };
    const { hostname: host, port } = new URL(chroma.url);
    const store = new Chroma(embeddings, { collectionName: 'notes', clientParams: { host, port: Number(port) } });
    const documents = [...TEXTS, 'likes tea too'].map((pageContent, i) => ({
      pageContent,
      metadata: { user_id: i < TEXTS.length ? 'ana' : 'ben', loc: { lines: { from: i, to: i } } },
    }));
    await store.addDocuments(documents, { ids: ['a', 'b', 'c', 'd', 'e'] });
    await store.addDocuments([{ pageContent: 'of nobody', metadata: { title: 'x' } }], { ids: ['n'] });

    const subject = await gatewayOn({ preset: 'langchain', collection: 'notes' });
    const { client } = subject;
    const hits = await client.search({ user_id: 'ana', q: 'tea' });
    const ranked = await store.similaritySearch('tea', 10, { user_id: 'ana' });
    expect(hits.map(({ memory }) => memory.content)).toEqual(ranked.map(({ pageContent }) => pageContent));
    expect((await client.search({ user_id: 'ana', q: TEXTS[0] as string }))[0]?.score).toBeCloseTo(1, 3);
    expect(await listed(subject, 'ana')).toEqual(['d', 'c', 'b', 'a']);
    expect(await listed(subject, 'carl')).toEqual([]);
    expect(await client.get('a')).toMatchObject({ content: TEXTS[0], user_id: 'ana', tags: [] });
    expectError(await client.ask(client.byId('n')), 'not_found');
    await expectReadOnly(subject, 'a');
  });

  it('[Decision 50] reads what mem0 wrote: no documents, times as texts with an offset', async () => {
    const collection = await (await chromaClient(chroma.url)).createCollection({
      name: 'mem0',
      embeddingFunction: null,
    });
    const times = ['2025-03-01T10:00:00.123456-08:00', '2025-03-02T00:00:00+02:00', '2025-03-01T23:00:00Z', undefined];
    await collection.add({
      ids: ['a', 'b', 'c', 'd'],
      embeddings: await vectorsOf(TEXTS),
      metadatas: TEXTS.map((data, i) => ({
        ...{ data, hash: 'h', user_id: 'ana', agent_id: 'support' },
        ...(times[i] !== undefined && { created_at: times[i] }),
        ...(i === 0 && { updated_at: '2025-04-01T00:00:00Z' }),
      })),
    });
    await collection.add({
      ids: ['n'],
      embeddings: await vectorsOf(['x']),
      metadatas: [{ user_id: 'ana', hash: 'h' }],
    });

    const subject = await gatewayOn({ preset: 'mem0' });
    const { client } = subject;
    expect(await listed(subject, 'ana')).toEqual(['c', 'b', 'a', 'd']);
    expect(await client.get('a')).toMatchObject({
      content: TEXTS[0],
      created_at: '2025-03-01T18:00:00.123Z',
      updated_at: '2025-04-01T00:00:00.000Z',
    });
    expect((await client.list({ user_id: 'ana', since: '2025-03-01T22:00:00Z' })).items.map(({ id }) => id)).toEqual([
      'c',
      'b',
    ]);
    const [best] = await client.search({ user_id: 'ana', q: 'likes green tea' });
    expect([best?.memory.id, best?.score]).toEqual(['a', expect.closeTo(1, 3)]);
    await expectReadOnly(subject, 'a');
  });

  it('[Decision 50] a collection that is not there, and one of a library without a preset, are told', async () => {
    await expect(gatewayOn({ preset: 'langchain' })).rejects.toThrow('Chroma has no such collection');
    await (await chromaClient(chroma.url)).createCollection({ name: 'foreign', embeddingFunction: null });
    await expect(gatewayOn({ collection: 'foreign' })).rejects.toThrow(
      'the collection "foreign" was not made by the gateway',
    );
  });
});
