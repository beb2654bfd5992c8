import { afterAll, describe, it } from 'vitest';
import milvus from '../../providers/collections/milvus.ts';
import { milvusBackend, NO_MILVUS } from '../milvus/server.ts';
import { openGateway } from '../support/gateway.ts';
import { checkAgreement } from './check.ts';
import { openModel, openStore } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 6);
const SEED = Number(process.env.OMP_TEST_SEED ?? 42);

describe('the gateway on Milvus Lite', () => {
  const opened: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  it('[Decision 1] [Decision 4] [Decision 14] [SPEC GET /memories/search order] gives the same answers as on memory', async ({
    skip,
  }) => {
    skip(NO_MILVUS !== '', NO_MILVUS);
    const { options, mode, close } = await milvusBackend();
    opened.push(close);
    const [store, model] = await Promise.all([
      openStore('milvus', (more) => openGateway((context) => milvus.open(options, context), { mode, ...more })),
      openModel(),
    ]);
    opened.push(store.subject.close, model.subject.close);
    await checkAgreement(model, [store], { runs: RUNS, seed: SEED, shrink: true });
  });
});
