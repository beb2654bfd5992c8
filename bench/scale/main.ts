/**
 * A store of a million memories: latency and recall of its searches:
 *   npm run bench:scale -- --url postgres://… [--reuse] [--keep] [--rounds 40] [--memories 1000000] [--distributed]
 *     [--out FILE]
 * Builds the schemas omp_scale and omp_scale_small and drops them afterwards, unless --keep is given. Building
 * takes minutes and 4 GB; --reuse measures schemas that were kept.
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import type { Log } from '#contract';
import { memoised } from '../../eval/memo.ts';
import { openConnections } from '../../providers/postgres/client/connections.ts';
import { Options } from '../../providers/postgres/postgres-options.ts';
import { openEmbedder } from '../../src/embedding/open.ts';
import { makeQuestions } from './clauses.ts';
import { compareStores, compareWays, measureRecall, measureVerbs, type Subject } from './measure.ts';
import { HUNDRED, type User, usersOf } from './population.ts';
import { randomFrom } from './random.ts';
import { report } from './report.ts';
import { call, openStore, prepareStore } from './stores.ts';

const QUESTIONS = 60;
const LARGE = 'omp_scale';
const SMALL = 'omp_scale_small';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: process.env.TEST_DATABASE_URL ?? '' },
    memories: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '40' },
    'large-user-rows': { type: 'string', default: String(Options.parse({}).large_user_rows) },
    distributed: { type: 'boolean', default: false },
    reuse: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    out: { type: 'string', default: fileURLToPath(new URL('RESULTS.md', import.meta.url)) },
  },
});
if (values.url === '') {
  console.error(
    'Where is the server? Give --url postgres://user@host/database, or TEST_DATABASE_URL. It needs pgvector 0.8.',
  );
  process.exit(2);
}
const [memories, rounds, largeUserRows] = [
  whole('memories', 1_000),
  whole('rounds', 1),
  whole('large-user-rows', 1),
] as const;

const log: Log = {
  info() {},
  warn: (fields, message) => console.error(message, fields),
  error: (fields, message) => console.error(message, fields),
};
const local = await openEmbedder({ kind: 'local', cache_size: 0, workers: 2 }, log);
const embedder = memoised(local);
const client = new pg.Client({ connectionString: values.url });
await client.connect();
const db = openConnections({
  config: { connectionString: values.url },
  ...{ connections: 1, prepared_statements: 'on', acquire_timeout_ms: 60_000, query_timeout_ms: 60_000 },
});
try {
  await client.query('create extension if not exists vector');
  const distributed = values.distributed ? ('citus' as const) : ('off' as const);
  const options = { client, url: values.url, embedder, log, largeUserRows, distributed };
  const smallMemories = Math.max(HUNDRED.memories * 2, Math.round(memories / 100));
  const prepare = async (schema: string, memories: number) => {
    const started = performance.now();
    const store = await prepareStore(options, { schema, memories, reuse: values.reuse });
    console.log(`${schema}: ready after ${Math.round((performance.now() - started) / 1_000)} s`);
    return store;
  };
  await prepare(SMALL, smallMemories);
  const store = await prepare(LARGE, memories);
  const questions = makeQuestions(randomFrom(2), QUESTIONS);
  await embedder.embed(questions, 'query', call);
  const hybrid = await openStore(options, LARGE);
  const vector = await openStore(options, LARGE, 'vector');
  const small = await openStore(options, SMALL);
  const sizes = oneOfEachSize(usersOf(memories));
  const subject: Subject = { client, db, store, embedder, hybrid, vector, users: sizes, questions };
  const { rows } = await client.query<{ indexed: number }>(
    `select (count(*) filter (where large))::int as indexed from ${store.names.memories}`,
  );
  const { indexed } = rows[0] as (typeof rows)[0];
  const server = await describeServer();
  const inIndexes = sizes.filter((user) => user.memories > largeUserRows);
  const text = report({
    ...{ server, memories, smallMemories, rounds, largeUserRows, indexed, users: usersOf(memories).length },
    verbs: await measureVerbs(subject, rounds),
    stores: await compareStores(subject, small, rounds * 4),
    crossings: values.distributed ? [] : await compareWays(subject, inIndexes, rounds),
    recalls: await measureRecall(subject, inIndexes),
  });
  await Promise.all([hybrid, vector, small].map((provider) => provider.close()));
  console.log(text);
  await writeFile(values.out, text);
} finally {
  if (!values.keep && !values.reuse) await client.query(`drop schema if exists ${LARGE}, ${SMALL} cascade`);
  await db.close();
  await client.end();
  await local.close();
}

async function describeServer(): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select 'PostgreSQL ' || current_setting('server_version') as name
     union all select extname || ' ' || extversion from pg_extension where extname in ('vector', 'citus')
     union all select 'shared_buffers ' || current_setting('shared_buffers')`,
  );
  const names = rows.map(({ name }) => name);
  if (!values.distributed) return names.join(', ');
  const shards = await client.query<{ spread: string }>(
    `select count(distinct nodename || nodeport) || ' workers, ' || count(*) || ' shards' as spread
     from citus_shards where table_name = $1::regclass`,
    [`${LARGE}.memories`],
  );
  return `${names.join(', ')}, ${shards.rows[0]?.spread}`;
}

/** The largest first. Small users come in every size; the one of 100 stands for them. */
function oneOfEachSize(users: readonly User[]): User[] {
  const kinds = new Map(users.filter(({ memories }) => memories >= 1_000).map((user) => [user.memories, user]));
  return [...kinds.values()].sort((a, b) => b.memories - a.memories).concat(HUNDRED);
}

function whole(name: 'memories' | 'rounds' | 'large-user-rows', least: number): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value >= least) return value;
  console.error(`--${name} must be a whole number from ${least}.`);
  process.exit(2);
}
