import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { ChromaClient } from 'chromadb';
import { NO_CHROMA, openChroma } from '../test/chroma/start.ts';
import { hashingEmbedder } from '../test/support/hashing-embedder.ts';
import { call } from '../test/support/requests.ts';
import { withGateway } from './default.ts';
import { machine } from './report.ts';
import { type BenchVerb, VERBS } from './workload.ts';

/*
 * What the gateway costs on Chroma, beside Chroma's own client: one request after another, in rounds that take turns, on the same collection.
 * npx tsx --conditions=source bench/chroma.ts, after npm run build. The embedding service is a stub that answers at
 * once; the client gets its vectors for nothing.
 */
const ROUNDS = 9;
const REQUESTS = 20;
const USERS = 20;
const MEMORIES = 250;
const DIMENSIONS = 512;

if (NO_CHROMA !== '') throw new Error(NO_CHROMA);
const embedder = hashingEmbedder(DIMENSIONS);
const vectorsOf = async (texts: readonly string[]) =>
  (await embedder.embed(texts, 'document', call)).map((vector) => [...vector]);
let texts = 0;
const textOf = () => `note ${texts++}: prefers the window seat on trains to ${Math.random().toString(36).slice(2)}`;
const userOf = () => `user ${Math.floor(Math.random() * USERS)}`;
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;

const service = createServer(async (request, response) => {
  const { input } = (await json(request)) as { input: string[] };
  const data = (await vectorsOf(input)).map((embedding, index) => ({ object: 'embedding', index, embedding }));
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ object: 'list', data, usage: { prompt_tokens: 1, total_tokens: 1 } }));
}).listen(0, '127.0.0.1');
const chroma = await openChroma();
const env = {
  OMP_PROVIDER: 'chroma',
  OMP_CHROMA_URL: chroma.url,
  OMP_SEARCH_MODE: 'vector',
  OMP_EMBEDDER: 'openai',
  OMP_EMBEDDING_MODEL: 'stub',
  OPENAI_BASE_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
};
try {
  await withGateway(env, async ({ url }) => {
    const ask = async (path: string, body?: object) => {
      const response = await fetch(url + path, {
        ...(body && {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      });
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return response.json() as Promise<{ results: { memory: { id: string } }[]; items: { id: string }[] }>;
    };
    const memory = () => ({ user_id: userOf(), content: textOf(), tags: ['travel'], scope: 'trips/trains' });
    const ids: string[] = [];
    for (let made = 0; made < USERS * MEMORIES; made += 100) {
      const { results } = await ask('/memories/batch', { memories: Array.from({ length: 100 }, memory) });
      ids.push(...results.map((result) => result.memory.id));
    }
    const { hostname: host, port } = new URL(chroma.url);
    const collection = await new ChromaClient({ host, port: Number(port) }).getCollection({ name: 'omp-memories' });
    const { metadatas } = await collection.get({ ids: ids.slice(0, 1) });
    const one = <Item>(items: readonly Item[]): Item => items[Math.floor(Math.random() * items.length)] as Item;

    const gateway: Record<BenchVerb, () => Promise<unknown>> = {
      get: () => ask(`/memories/${one(ids)}`),
      list: () => ask(`/memories?${new URLSearchParams({ user_id: userOf(), limit: '50' })}`),
      search: () => ask(`/memories/search?${new URLSearchParams({ user_id: userOf(), q: textOf(), limit: '10' })}`),
      add: () => ask('/memories', memory()),
    };
    const [vector = []] = await vectorsOf([textOf()]);
    const client: typeof gateway = {
      get: () => collection.get({ ids: [one(ids)] }),
      list: () => collection.get({ where: { user_id: userOf() }, limit: 50 }),
      search: () => collection.query({ queryEmbeddings: [vector], nResults: 10, where: { user_id: userOf() } }),
      add: () =>
        collection.add({
          ids: [textOf()],
          embeddings: [vector],
          documents: [textOf()],
          metadatas: [metadatas[0] ?? {}],
        }),
    };
    console.log(`${machine()}; ${ids.length} memories of ${USERS} users, ${DIMENSIONS} dimensions`);
    console.log('| verb | client | gateway | the gateway costs |\n| --- | --- | --- | --- |');
    for (const verb of VERBS) {
      const times = { client: [] as number[], gateway: [] as number[] };
      for (let round = 0; round <= ROUNDS; round++) {
        for (const [name, work] of [
          ['client', client[verb]],
          ['gateway', gateway[verb]],
        ] as const) {
          const taken: number[] = [];
          for (let i = 0; i < REQUESTS; i++) {
            const start = performance.now();
            await work();
            taken.push(performance.now() - start);
          }
          // The first round is for warming up.
          if (round > 0) times[name].push(median(taken));
        }
      }
      const [plain, whole] = [median(times.client), median(times.gateway)];
      console.log(`| ${verb} | ${plain.toFixed(1)} ms | ${whole.toFixed(1)} ms | ${(whole - plain).toFixed(1)} ms |`);
    }
  });
} finally {
  await chroma.close();
  service.close();
  service.closeAllConnections();
}
