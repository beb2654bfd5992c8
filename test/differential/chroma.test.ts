import { afterAll, describe, it } from 'vitest';
import chroma from '../../providers/collections/chroma.ts';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { openGateway } from '../support/gateway.ts';
import { checkAgreement } from './check.ts';
import { openModel, openStore } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 20);
const SEED = Number(process.env.OMP_TEST_SEED ?? 42);

/** The memory provider with scopes of its own is the model; on Chroma, scopes are tags. */
describe.skipIf(NO_CHROMA !== '')(`the gateway on Chroma${NO_CHROMA && ` (${NO_CHROMA})`}`, () => {
  const opened: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  it('[Decision 1] [Decision 4] [Decision 14] [SPEC GET /memories/search order] gives the same answers as on memory', async () => {
    const { url, close } = await openChroma();
    opened.push(close);
    const [store, model] = await Promise.all([
      openStore('chroma', (more) =>
        openGateway((context) => chroma.open({ url }, context), { mode: 'vector', ...more }),
      ),
      openModel(),
    ]);
    opened.push(store.subject.close, model.subject.close);
    await checkAgreement(model, [store], { runs: RUNS, seed: SEED, shrink: true });
  });
});
