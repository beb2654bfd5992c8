import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Embedder, Log, RankingOptions } from '#contract';
import type { ProviderName } from '../src/config/settings.ts';
import { compose } from '../src/core/compose.ts';
import type { Store } from '../src/core/store.ts';
import { openProvider } from '../src/registry.ts';

export type Mode = RankingOptions['mode'];
export const MODES: readonly Mode[] = ['vector', 'keyword', 'hybrid'];

/** The gateway's default. */
const KEYWORD_WEIGHT = 0.5;

/** A backend to evaluate; every name gets an empty provider. */
export interface Backend {
  readonly label: string;
  open(mode: Mode, name: string): Promise<Store>;
  /** Removes everything. Close the providers first. */
  remove(): Promise<void>;
}

/** Memory, the embedded Postgres, and the server at `url` if there is one. */
export async function openBackends(embedder: Embedder, log: Log, url: string | undefined): Promise<Backend[]> {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-eval-'));
  const open = async (name: ProviderName, options: object, mode: Mode): Promise<Store> => {
    const used = mode === 'keyword' ? undefined : embedder;
    const ranking = { mode, keyword_weight: KEYWORD_WEIGHT };
    const context = { embedder: used, ranking, audit: undefined, data_dir, log };
    return compose(await openProvider(name, options, context), { embedder: used, log });
  };
  const schemas = new Set<string>();
  const openPostgres = (mode: Mode, name: string, server: { url?: string }): Promise<Store> => {
    const schema = `omp_eval_${process.pid}_${name}`;
    schemas.add(schema);
    const options = { connections: 2, prepared_statements: 'auto', connect_timeout_ms: 60_000, ...server };
    return open('postgres', { ...options, schema }, mode);
  };
  const backends: Backend[] = [
    {
      label: 'memory',
      open: (mode) => open('memory', { scopes: 'native' }, mode),
      async remove() {},
    },
    {
      label: 'postgres (embedded)',
      open: (mode, name) => openPostgres(mode, name, {}),
      remove: () => rm(data_dir, { recursive: true, force: true }),
    },
  ];
  if (url === undefined) return backends;
  return [
    ...backends,
    {
      label: 'postgres (server)',
      open: (mode, name) => openPostgres(mode, name, { url }),
      remove: () => dropSchemas(url, schemas),
    },
  ];
}

async function dropSchemas(url: string, schemas: ReadonlySet<string>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const schema of schemas) await client.query(`drop schema if exists ${schema} cascade`);
  } finally {
    await client.end();
  }
}
