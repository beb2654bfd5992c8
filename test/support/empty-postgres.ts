import { existsSync } from 'node:fs';
import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';

/**
 * A freshly initialised embedded Postgres, without any table of ours. Making one takes seconds, copying it a moment;
 * the process tests start from nothing, as a user does.
 */
const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite');
const modules = entry.slice(0, entry.indexOf('@electric-sql'));
const TEMPLATE = join(modules, '.cache', 'omp-gateway-test', 'postgres');

/** Makes the template once a checkout. */
export async function prepareEmptyPostgres(): Promise<void> {
  if (existsSync(TEMPLATE)) return;
  await mkdir(dirname(TEMPLATE), { recursive: true });
  const unfinished = `${TEMPLATE}.${process.pid}`;
  const db = await PGlite.create({ dataDir: unfinished, extensions: { vector } });
  await db.close();
  // Somebody else may have made it meanwhile; one is as good as the other.
  await rename(unfinished, TEMPLATE).catch(() => rm(unfinished, { recursive: true, force: true }));
}

/** Puts a copy where a gateway with this data folder looks for its database. */
export const copyEmptyPostgres = (dataDir: string): Promise<void> =>
  cp(TEMPLATE, join(dataDir, 'postgres'), { recursive: true });
