import { afterAll, describe, it } from 'vitest';
import type { Memory, Provider } from '#contract';
import { checkAgreement } from '../differential/check.ts';
import { openModel } from '../differential/pinecone-store.ts';
import { openStore, type Store } from '../differential/world.ts';
import { COLUMNS, DOCUMENT, openShape } from './tables.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 20);
const SEED = Number(process.env.OMP_TEST_SEED ?? 4);

/** Nobody tells of rows of others how far they are; memory does. */
function withStatus(provider: Provider): Provider {
  const { add, get, update, list, search } = provider as Required<Provider>;
  const done = <Found extends Memory | undefined>(memory: Found): Found => memory && { ...memory, status: 'done' };
  return {
    ...provider,
    add: async (...given) => done(await add(...given)),
    get: async (ref, call) => done(await get(ref, call)),
    update: async (...given) => done(await update(...given)),
    list: async (query, call) => (await list(query, call)).map(done),
    search: async (query, call) => (await search(query, call)).map((hit) => ({ ...hit, memory: done(hit.memory) })),
  };
}

describe('a table of others gives the same answers as memory', () => {
  const opened: Store[] = [];
  afterAll(async () => {
    for (const { subject } of opened) await subject.close();
  });

  it('[Decision 1] [Decision 3] [Decision 4] [Decision 14] [SPEC GET /memories/search order] whatever is asked', {}, async () => {
    opened.push(await openModel());
    for (const shape of [COLUMNS, DOCUMENT]) {
      opened.push(await openStore(shape.label, (options) => openShape(shape, { ...options, alter: withStatus })));
    }
    const [model, ...others] = opened as [Store, ...Store[]];
    await checkAgreement(model, others, { runs: RUNS, seed: SEED, shrink: true });
  });
});
