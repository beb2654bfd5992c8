import { randomUUID } from 'node:crypto';
import type { Traits } from '#provider';
import { providerTests } from '../conformance/provider-tests.ts';
import { FULL } from '../support/full.ts';
import { inMemory } from './in-memory.ts';

/** Databases that differ in everything. */
const RUNS: Readonly<Record<string, Partial<Traits>>> = {
  'that can everything': {},
  'that sorts by a number, with UUIDs, and has no prefix': {
    ...{ order: 'number', ids: 'uuid', filters: ['anyOf', 'allOf', 'not'], measure: 'product', max_batch: 10 },
  },
  'that can least': {
    ...{ order: 'none', filters: [], measure: 'squared distance', exact: false, max_limit: 1_000, max_batch: 7 },
  },
  ...(FULL && {
    'that decides a prefix alone': { order: 'none', filters: ['prefix'], measure: 'distance' },
    'that measures by cosine distance': { measure: 'cosine distance', exact: false },
  }),
};

for (const [which, traits] of Object.entries(RUNS))
  providerTests(
    inMemory(traits),
    () => ({ mode: 'vector', options: { collection: randomUUID() } }),
    `the kit on a database ${which}`,
  );
