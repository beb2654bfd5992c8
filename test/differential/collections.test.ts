import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, it } from 'vitest';
import type { ProviderModule } from '#contract';
import lancedb from '../../providers/collections/lancedb.ts';
import libsql from '../../providers/collections/libsql.ts';
import { inMemory } from '../collections/in-memory.ts';
import { FULL } from '../support/full.ts';
import { openGateway } from '../support/gateway.ts';
import { checkAgreement } from './check.ts';
import { openModel, openStore } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? (FULL ? 100 : 6));
const SEED = Number(process.env.OMP_TEST_SEED ?? 45);

const STORES: Readonly<Record<string, (folder: string) => readonly [ProviderModule, object]>> = {
  LanceDB: (folder) => [lancedb, { folder: join(folder, 'agreement') }],
  libSQL: (folder) => [libsql, { url: `file:${join(folder, 'agreement.db')}` }],
  'a database that can least': () => [
    inMemory({ order: 'none', filters: [], exact: false, ids: 'uuid', max_limit: 1_000 }),
    { collection: randomUUID() },
  ],
};

describe.each(Object.keys(STORES))('the gateway on %s', (name) => {
  const opened: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  it('[Decision 64] [Decision 1] [Decision 4] [Decision 14] [SPEC GET /memories/search order] gives the same answers as on memory', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'omp-agreement-'));
    opened.push(() => rm(folder, { recursive: true }));
    const [module, options] = (STORES[name] as (typeof STORES)[string])(folder);
    const [store, model] = await Promise.all([
      openStore(name, (more) => openGateway((context) => module.open(options, context), { mode: 'vector', ...more })),
      openModel(),
    ]);
    opened.push(store.subject.close, model.subject.close);
    await checkAgreement(model, [store], { runs: RUNS, seed: SEED, shrink: true });
  });
});
