import { randomUUID } from 'node:crypto';
import { afterAll, describe, it } from 'vitest';
import { DATABASES, type Database } from '../collections/databases.ts';
import { inMemory } from '../collections/in-memory.ts';
import { FULL } from '../support/full.ts';
import { openGateway } from '../support/gateway.ts';
import { checkAgreement } from './check.ts';
import { openModel, openStore } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = process.env.OMP_TEST_RUNS;
const SEED = Number(process.env.OMP_TEST_SEED ?? 45);
/** Of a database whose writes take long, fewer are tried. */
const FEWER: Readonly<Record<string, number>> = { LanceDB: 6, 'Milvus Lite': 6 };

const LEAST: Database = {
  name: 'a database that can least',
  provider: inMemory({ order: 'none', filters: [], exact: false, ids: 'uuid', max_limit: 1_000 }),
  absent: '',
  open: async () => ({ options: { collection: randomUUID() }, env: {}, close: async () => {} }),
};

/** The memory provider with scopes of its own is the model. */
describe.each([...DATABASES, LEAST])('the gateway on $name', ({ name, provider, absent, open }) => {
  const opened: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  it('[Decision 64] [Decision 1] [Decision 4] [Decision 14] [SPEC GET /memories/search order] gives the same answers as on memory', async ({
    skip,
  }) => {
    skip(absent !== '', absent);
    const { options, close } = await open();
    opened.push(close);
    const [store, model] = await Promise.all([
      openStore(name, (more) => openGateway((context) => provider.open(options, context), { mode: 'vector', ...more })),
      openModel(),
    ]);
    opened.push(store.subject.close, model.subject.close);
    const runs = Number(RUNS ?? (FULL ? 100 : (FEWER[name] ?? 20)));
    await checkAgreement(model, [store], { runs, seed: SEED, shrink: true });
  });
});
