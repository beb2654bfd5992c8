/**
 * What a caller's small request waits while another caller sends eight large ones at a time, about a user of 100,000 memories:
 *   npm run bench:neighbour [-- --base DIR --rounds N --seconds N --memories N --only stats,users]
 * Needs a server, which DATABASE_URL names (a schema of its own, dropped afterwards). `--base` is another built checkout, measured
 * in turn on the same rows. Each round has eight small requests as control beside each verb. Prints Markdown.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { toHashedKey } from '../src/auth/configured-keys.ts';
import { newKey } from '../src/auth/credentials.ts';
import { withGateway } from './default.ts';
import { dropSchema } from './engine.ts';
import { load } from './load.ts';
import { machine, table } from './report.ts';
import { batchesOf, type Request } from './workload.ts';

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    memories: { type: 'string', default: '100000' },
    only: { type: 'string' },
  },
});
const [rounds, seconds, memories] = [Number(values.rounds), Number(values.seconds), Number(values.memories)];
const database = process.env.DATABASE_URL;
if (!database || !(rounds > 0 && seconds > 0 && memories >= 100)) {
  throw new Error('needs DATABASE_URL, and --rounds, --seconds above 0, and --memories from 100');
}

const AT_A_TIME = 8;
const USER = 'big';
const get = (path: string): Request => ({ method: 'GET', path });
const post = (path: string, body: object): Request => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
const CONTROL = get(`/memories?user_id=${USER}&limit=1`);
const HEAVY: Readonly<Record<string, Request>> = {
  stats: get(`/stats?user_id=${USER}`),
  users: get('/users?limit=500'),
  'list by tag': get(`/memories?user_id=${USER}&tag=nobody`),
  'list by scope': get(`/memories?user_id=${USER}&scope=nowhere/*`),
  'list by origin': get(`/memories?user_id=${USER}&origin=key:nobody`),
  'list 200': get(`/memories?user_id=${USER}&limit=200`),
  search: get(`/memories/search?user_id=${USER}&q=holiday+in+vienna`),
  context: post('/context', { user_id: USER, query: 'holiday in vienna' }),
  audit: get(`/audit?user_id=${USER}&app=nobody`),
  'changes by scope': get('/changes?scope=nowhere/*'),
  'changes with memories': get('/changes?include=memory&limit=500'),
  'rollback dry run': post(`/users/${USER}/rollback`, { key: 'nobody', since: '2020-01-01T00:00:00Z', dry_run: true }),
  export: get(`/export?user_id=${USER}&limit=500`),
  'file of a person': get(`/users/${USER}/file`),
  'stream of changes': { ...get('/changes?limit=1'), headers: { accept: 'text/event-stream' } },
};
const verbs = Object.entries(HEAVY).filter(
  ([name]) => values.only === undefined || values.only.split(',').includes(name),
);

/** Keys of two callers. */
const [big, near] = [newKey(), newKey()];
const as = ({ key }: typeof big, { headers, ...request }: Request): Request => ({
  ...request,
  headers: { ...headers, authorization: `Bearer ${key}` },
});
const NEIGHBOUR = as(near, get('/memories?user_id=near&limit=1'));

/** Sends the request and takes its whole answer. */
async function take(url: string, { path, ...init }: Request, signal?: AbortSignal): Promise<void> {
  const response = await fetch(url + path, { ...init, ...(signal && { signal }) });
  for await (const _ of response.body ?? []);
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
}

/** Milliseconds of each small request while `AT_A_TIME` of the others are under way. */
async function waits(url: string, other: Request): Promise<number[]> {
  const end = new AbortController();
  setMaxListeners(0, end.signal);
  const others = Array.from({ length: AT_A_TIME }, async () => {
    while (!end.signal.aborted) await take(url, other, end.signal);
  });
  const refused = Promise.all(others).then(
    () => undefined,
    (error: unknown) => (end.signal.aborted ? undefined : error),
  );
  const found: number[] = [];
  await sleep(200);
  for (const until = performance.now() + 1_000 * seconds; performance.now() < until; await sleep(2)) {
    const began = performance.now();
    await take(url, NEIGHBOUR);
    found.push(performance.now() - began);
  }
  end.abort();
  const error = await refused;
  if (error !== undefined) throw error;
  // What the server still runs of them ends.
  await sleep(300);
  return found;
}

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] as number;
const figures = (values: readonly number[]): string =>
  [0.5, 0.95, 1].map((share) => quantile(values, share).toFixed(0)).join(' / ');

const schema = `omp_bench_${process.pid}_neighbour`;
const env = {
  ...{ DATABASE_URL: database, OMP_POSTGRES_SCHEMA: schema, OMP_SEARCH_MODE: 'keyword' },
  OMP_AUTH_KEYS: JSON.stringify(
    Object.entries({ big, near }).map(([name, key]) => ({ name, key: toHashedKey(key), grants: ['*:*'] })),
  ),
};
console.log(
  `${machine()}; ${memories} memories of one user, ${AT_A_TIME} requests at a time, ${rounds} rounds of ${seconds} s`,
);
console.log(`\nA neighbour's \`?limit=1\`, median / p95 / maximum in ms\n`);
try {
  await withGateway(env, async ({ url }) => {
    const fill = [...batchesOf(USER, memories), ...batchesOf('near', 1_000)].map((request) => as(big, request));
    await load(url, fill, { connections: 4, seconds: 'once' });
  });
  const rows = new Map(verbs.map(([name]) => [name, [] as string[]]));
  for (const root of values.base === undefined ? [undefined] : [values.base, undefined]) {
    await withGateway(
      env,
      async ({ url }) => {
        for (const [name, request] of verbs) {
          const [control, loaded]: [number[], number[]] = [[], []];
          for (let round = 0; round < rounds; round++) {
            control.push(...(await waits(url, as(big, CONTROL))));
            loaded.push(...(await waits(url, as(big, request))));
          }
          const share = quantile(loaded, 0.5) / quantile(control, 0.5);
          rows.get(name)?.push(figures(control), figures(loaded), `${share.toFixed(1)}×`);
          console.error(name, ...(rows.get(name) ?? []));
        }
      },
      root,
    );
  }
  const columns = ['small requests', 'of the verb', 'ratio of medians'];
  const headings = values.base === undefined ? columns : [...columns.map((name) => `base: ${name}`), ...columns];
  console.log(
    table(
      ['', ...headings],
      [...rows].map(([name, cells]) => [name, ...cells]),
    ),
  );
} finally {
  await dropSchema(database, schema);
}
