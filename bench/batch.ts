import type { Series } from './compare.ts';
import { withGateway } from './default.ts';
import { dropSchema } from './engine.ts';
import { type Load, load } from './load.ts';
import { addRequest, type Request } from './workload.ts';

const MEMORIES = 1_000;
/** What a batch may have at most. */
const BATCH = 100;

/** Memories in a request, and clients that each send one request at a time. */
interface Way {
  readonly name: string;
  readonly size: number;
  readonly connections: number;
}

const WAYS: readonly Way[] = [
  { name: 'one by one', size: 1, connections: 1 },
  { name: 'one by one, 8 clients', size: 1, connections: 8 },
  { name: 'batches of 100', size: BATCH, connections: 1 },
];

const EMBEDDERS = { 'local embedder': 'hybrid', 'no embedder (keyword search)': 'keyword' } as const;

/** A configuration of the gateway, and memories per second of each way in each round; the last way is batches. */
export interface BatchResult {
  readonly name: string;
  readonly ways: readonly Series[];
}

/** Adds 1,000 new memories in each way, round after round, with and without an embedder. */
export async function measureBatches(url: string | undefined, rounds: number): Promise<BatchResult[]> {
  const store = url === undefined ? 'embedded Postgres' : 'PostgreSQL server';
  const results: BatchResult[] = [];
  for (const [embedder, mode] of Object.entries(EMBEDDERS)) {
    const schema = `omp_bench_${process.pid}_${mode}`;
    const env = { OMP_SEARCH_MODE: mode, OMP_POSTGRES_SCHEMA: schema, ...(url !== undefined && { DATABASE_URL: url }) };
    try {
      await withGateway(env, async ({ url: gateway }) => {
        results.push({ name: `${store}, ${embedder}`, ways: await measure(gateway, rounds) });
      });
    } finally {
      if (url !== undefined) await dropSchema(url, schema);
    }
  }
  return results;
}

async function measure(url: string, rounds: number): Promise<BatchResult['ways']> {
  const add = async ({ size, connections }: Way): Promise<Load> => {
    const found = await load(url, requestsOf(size), { connections, seconds: 'once' });
    return { ...found, perSecond: found.perSecond * size };
  };
  const series = WAYS.map((way) => ({ name: way.name, way, runs: [] as Load[] }));
  await checkBatch(url);
  // Each way once before anything is measured.
  for (const way of WAYS) await add(way);
  for (let round = 0; round < rounds; round++) {
    for (const { way, runs } of round % 2 === 0 ? series : series.toReversed()) runs.push(await add(way));
  }
  return series;
}

function requestsOf(size: number): Request[] {
  const adds = Array.from({ length: MEMORIES }, addRequest);
  if (size === 1) return adds;
  return Array.from({ length: MEMORIES / size }, (_, at) => {
    const memories = adds.slice(at * size, (at + 1) * size).map(({ body }) => JSON.parse(body as string));
    return { ...addRequest(), path: '/memories/batch', body: JSON.stringify({ memories }) };
  });
}

/** A batch answers 200 also for memories that were not added. */
async function checkBatch(url: string): Promise<void> {
  const [{ path, ...init }] = requestsOf(BATCH) as [Request];
  const { results } = (await (await fetch(url + path, init)).json()) as { results: { memory?: object }[] };
  if (results.length !== BATCH || results.some(({ memory }) => !memory)) {
    throw new Error('a batch was not added');
  }
}
