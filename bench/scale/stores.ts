import pg from 'pg';
import { backgroundCall, type Embedder, type Log, type ProviderContext } from '#contract';
import { analyse } from '#ranking';
import { namesInUse } from '../../providers/postgres/startup/compatibility-check.ts';
import { type Names, toNames } from '../../providers/postgres/tables/names.ts';
import type { WritableStore } from '../../src/core/store.ts';
import { withEmbedder } from '../../src/core/with-embedder.ts';
import { openProvider } from '../../src/registry.ts';
import { build, type Clauses } from './build.ts';
import { makeClauses } from './clauses.ts';
import { usersOf } from './population.ts';
import { randomFrom } from './random.ts';

/** Number of different sentences. */
const CLAUSES = 4_000;

export const call = backgroundCall('scale', new AbortController().signal);

export interface Store {
  readonly schema: string;
  readonly names: Names;
  readonly memories: number;
}

export interface StoreOptions {
  readonly client: pg.Client;
  readonly url: string;
  readonly embedder: Embedder;
  readonly log: Log;
  readonly largeUserRows: number;
  readonly distributed: 'off' | 'citus';
}

/** The provider as the registry opens it, hybrid by default, without decorators. */
export async function openStore(
  { url, embedder, log, largeUserRows, distributed }: Omit<StoreOptions, 'client'>,
  schema: string,
  mode: ProviderContext['ranking']['mode'] = 'hybrid',
): Promise<WritableStore> {
  const options = { url, schema, large_user_rows: largeUserRows, distributed };
  const ranking = { mode, keyword_weight: 0.5 };
  const audit = { retention_days: null };
  const provider = await openProvider('postgres', options, {
    ...{ embedder, ranking, audit, data_dir: '/nowhere', log },
  } as ProviderContext);
  return withEmbedder(provider, embedder, log) as WritableStore;
}

/** A store with this number of memories in a separate schema; an existing one if it may be reused. */
export async function prepareStore(
  options: StoreOptions,
  { schema, memories, reuse }: { schema: string; memories: number; reuse: boolean },
): Promise<Store> {
  const { client, embedder, largeUserRows, distributed } = options;
  const quoted = pg.escapeIdentifier(schema);
  const found = await client.query('select 1 from pg_namespace where nspname = $1', [schema]);
  const wanted = reuse && found.rowCount !== 0;
  if (!wanted) await client.query(`drop schema if exists ${quoted} cascade`);
  // Its migrations, and the index for the embedder's vectors.
  await (await openStore(options, schema)).close();
  const extension = await client.query<{ schema: string }>(
    `select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`,
  );
  const initial = toNames(schema, extension.rows[0]?.schema as string);
  const names = await namesInUse(client, initial, distributed === 'citus');
  if (!wanted) {
    const users = usersOf(memories);
    await build({ client, names, users, clauses: await clausesFor(embedder), largeUserRows });
  }
  return { schema, names, memories };
}

let clauses: Promise<Clauses> | undefined;
function clausesFor(embedder: Embedder): Promise<Clauses> {
  const texts = makeClauses(randomFrom(1), CLAUSES);
  clauses ??= embedder
    .embed(texts, 'document', call)
    .then((vectors) => ({ texts, vectors, terms: texts.map(analyse) }));
  return clauses;
}
