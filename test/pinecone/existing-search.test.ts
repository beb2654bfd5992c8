import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { openMapped } from '../../providers/pinecone/mapped/mapped-provider.ts';
import { Options } from '../../providers/pinecone/options.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { memoriesOf } from '../support/memories.ts';
import { call, searchFor } from '../support/requests.ts';
import { freshUser, recordingLog, type Subject } from '../support/subject.ts';
import { fill, openExistingSubject } from './existing-subject.ts';

const METRICS = ['cosine', 'dotproduct', 'euclidean'] as const;
const namespace = 'docs';
const OPTIONS = { preset: 'mem0', namespace };

const servers = new Map<string, Pinecone>();
const subjects = new Map<string, Subject>();
beforeAll(async () => {
  await Promise.all(
    METRICS.map(async (metric) => {
      const server = await startPinecone({ metric });
      servers.set(metric, server);
      subjects.set(metric, await openExistingSubject(server, OPTIONS));
    }),
  );
});
afterAll(async () => {
  for (const subject of subjects.values()) await subject.close();
  await Promise.all([...servers.values()].map((server) => server.close()));
});
const on = (metric: (typeof METRICS)[number]) => ({
  server: servers.get(metric) as Pinecone,
  client: (subjects.get(metric) as Subject).client,
});

const recordOf = (user: string, text: string, more: object = {}) => ({
  id: `${user}/${text.replaceAll(' ', '-')}`,
  text,
  metadata: { data: text, user_id: user, ...more },
});
const TEXTS = ['green tea in the morning', 'green tea', 'black coffee', 'a red van', 'the morning train', 'gardening'];
const embedder = hashingEmbedder();
/** Truth: the cosines of all texts. */
async function ranked(query: string): Promise<{ text: string; score: number }[]> {
  const vectors = await embedder.embed([query, ...TEXTS], 'document', call);
  const [asked = new Float32Array(), ...rest] = vectors;
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  const cosine = (other: Float32Array) => dot(asked, other) / Math.sqrt(dot(asked, asked) * dot(other, other));
  return TEXTS.map((text, at) => ({ text, score: Math.max(0, cosine(rest[at] as Float32Array)) }));
}

describe('search in an index that others fill', () => {
  it.each(METRICS)('[SPEC SearchResult score] is the cosine where the metric is %s', async (metric) => {
    const { server, client } = on(metric);
    const user = freshUser();
    await fill(
      server,
      namespace,
      TEXTS.map((text) => recordOf(user, text)),
    );
    const truth = new Map((await ranked('green tea in the evening')).map(({ text, score }) => [text, score]));
    const hits = await client.search({ q: 'green tea in the evening', user_id: user });
    expect(hits.map(({ memory }) => memory.content).sort()).toEqual(TEXTS.toSorted());
    for (const { memory, score } of hits) expect(score).toBeCloseTo(truth.get(memory.content) as number, 2);
    const scores = hits.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(scores[0]).toBeGreaterThan(0.5);
    expect(scores.at(-1)).toBe(0);
  });

  it('[SPEC GET /memories/search order] ties, and all that is unlike, are in the order of the list', async () => {
    const { server, client } = on('cosine');
    const user = freshUser();
    const at = (id: string, created_at: string) => ({
      id: `${user}/${id}`,
      text: 'green tea',
      metadata: { data: id, user_id: user, created_at },
    });
    await fill(server, namespace, [at('a', '2025-01-02'), at('b', '2025-01-03'), at('c', '2025-01-02')]);
    for (const q of ['green tea', 'zzzz qqqq']) {
      const hits = await client.search({ q, user_id: user });
      expect(hits.map(({ memory }) => memory.content)).toEqual(['b', 'c', 'a']);
    }
  });

  it('[Decision 12] a query without any signal is like nothing, whatever the metric says', async () => {
    const [silent = ''] = (
      await Promise.all(
        Array.from({ length: 300 }, async (_, at) => {
          const [vector] = await embedder.embed([String(at)], 'query', call);
          return vector?.every((component) => component === 0) ? [String(at)] : [];
        }),
      )
    ).flat();
    expect(silent).not.toBe('');
    for (const metric of METRICS) {
      const { server, client } = on(metric);
      const user = freshUser();
      await fill(server, namespace, [recordOf(user, 'green tea'), recordOf(user, 'black coffee')]);
      const hits = await client.search({ q: silent, user_id: user });
      expect(hits.map(({ memory, score }) => [memory.content, score])).toEqual([
        ['green tea', 0],
        ['black coffee', 0],
      ]);
    }
  });

  it('[SPEC GET /memories/search limit] records that are no memories take nobody’s place', async () => {
    const { server, client } = on('cosine');
    const user = freshUser();
    const textless = Array.from({ length: 150 }, (_, at) => ({
      id: `${user}/textless-${at}`,
      text: 'green tea',
      metadata: { user_id: user },
    }));
    await fill(server, namespace, [...textless, ...TEXTS.map((text) => recordOf(user, `${text}!`))]);
    await server.resetCalls();
    const hits = await client.search({ q: 'green tea', user_id: user, limit: 3 });
    expect(hits.map(({ memory }) => memory.content)).toEqual([
      'green tea!',
      'green tea in the morning!',
      expect.any(String),
    ]);
    // 3, 12, 48, and 192 without metadata, fetched by the hundred.
    const operations = (await server.calls()).map(({ operation }) => operation);
    expect(operations).toEqual(['query', 'query', 'query', 'query', 'fetch', 'fetch']);
    expect(await client.search({ q: 'green tea', user_id: user, limit: 100 })).toHaveLength(TEXTS.length);
  });

  it('[SPEC GET /memories/search limit] the usual search is one request; answers stay below 4 MB', async () => {
    const { server, client } = on('cosine');
    const user = freshUser();
    const bytes = Buffer.byteLength(JSON.stringify(recordOf(user, 'text 100', { padding: '' }).metadata));
    const records = Array.from({ length: 100 }, (_, at) =>
      recordOf(user, `text ${100 + at}`, { padding: 'x'.repeat(40_960 - bytes) }),
    );
    await fill(server, namespace, records, 40);
    for (const limit of [1, 94, 95, 96, 100]) {
      await server.resetCalls();
      expect(await client.search({ q: 'text', user_id: user, limit })).toHaveLength(limit);
      const operations = (await server.calls()).map(({ operation }) => operation);
      expect(operations).toEqual(limit <= 95 ? ['query'] : ['query', 'fetch']);
    }
  });

  it('[SPEC GET /memories/search limit] ids that Pinecone cannot be asked for are shown all the same', async () => {
    const { server, client } = on('cosine');
    const user = freshUser();
    const records = Array.from({ length: 100 }, (_, at) => recordOf(user, `text ${at}`));
    await fill(
      server,
      namespace,
      records.map((record, at) => (at % 2 ? record : { ...record, id: `${user} ${at}` })),
    );
    for (const limit of [95, 96, 100]) {
      const hits = await client.search({ q: 'text', user_id: user, limit });
      expect(new Set(hits.map(({ memory }) => memory.id)).size).toBe(limit);
    }
    expect((await client.list({ user_id: user, limit: 500 })).items).toHaveLength(100);
    expectError(await client.ask(client.byId(`${user} 0`)), 'not_found');
  });

  it('[SPEC Errors invalid_request] says so where Pinecone shows too little to fill the page', async () => {
    const { server } = on('cosine');
    const user = freshUser();
    const options = Options.parse({ api_key: 'key', index_host: server.url, ...OPTIONS });
    const service = connect(options);
    const asked: number[] = [];
    const textless: Service = {
      ...service,
      async query(_, { topK }) {
        asked.push(topK);
        const match = (at: number) => ({ id: `gone-${at}`, score: 1, metadata: undefined });
        return { matches: Array.from({ length: topK }, (_, at) => match(at)), indexedLsn: undefined };
      },
      fetch: async () => new Map(),
    };
    const context = { embedder, log: recordingLog() };
    const provider = memoriesOf(await openMapped(textless, options, context), context.embedder);
    asked.length = 0;
    const search = provider.search(searchFor(user, 'green tea'), call);
    await expect(search).rejects.toMatchObject({ code: 'invalid_request' });
    expect(asked).toEqual([10, 40, 160, 640, 2_560, 10_000]);
    await provider.close();
  });
});
