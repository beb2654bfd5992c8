import { expect, it } from 'vitest';
import type { Holdings, Memory } from '#contract';
import { isEmpty, readBack, type StoreErasure } from '../../src/core/erasure.ts';
import { call } from '../support/requests.ts';

const holdings = async (): Promise<Partial<Holdings>> => ({ versions: 2 });
const list = async () => [{}, {}] as Memory[];
const capabilities = { mapped: true };

it.each([
  ['counted by itself, if it can', { holdings, list }, { left: { versions: 2 }, read_back: 'counted' }],
  ['listed otherwise', { list }, { left: { memories: 2 }, read_back: 'listed' }],
  ['not read back where it can do neither', {}, { left: {}, read_back: 'impossible' }],
  [
    'known as one that another application fills',
    { list, capabilities },
    { left: { memories: 2 }, read_back: 'listed', mapped: true },
  ],
])('[Decision 62] after an erase a store is %s', async (_, store, expected) => {
  expect(
    await readBack({ capabilities: {}, ...store } as Parameters<typeof readBack>[0], { user_id: 'u' }, call),
  ).toEqual(expected);
});

it.each<[StoreErasure['read_back'], Partial<Holdings>, boolean]>([
  ['counted', {}, true],
  ['counted', { memories: 0, versions: 0, audit_entries: 3, large_user_notes: 1 }, true],
  ['counted', { memories: 0, versions: 1, audit_entries: 3 }, false],
  ['counted', { idempotency_keys: 1 }, false],
  ['listed', { memories: 0 }, true],
  ['listed', { memories: 1 }, false],
  ['impossible', {}, false],
  ['failed', {}, false],
])('[Decision 62] a store that was %s, with %j left, is empty: %s', (read_back, left, expected) => {
  expect(isEmpty({ name: 'store', removed: {}, left, read_back })).toBe(expected);
});
