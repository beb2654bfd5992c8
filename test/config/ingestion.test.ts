import { expect, it } from 'vitest';
import { providerOptions } from '../../src/config/options.ts';
import { load, mistakesOf } from './sources.ts';

it('is synchronous unless told otherwise, and reaches the provider', () => {
  expect(providerOptions(load({}).config)).toMatchObject({ ingestion: 'sync' });
  expect(providerOptions(load({ env: { OMP_INGESTION: 'async' } }).config)).toMatchObject({ ingestion: 'async' });
});

it('cannot be asynchronous without vectors to compute', () => {
  const env = { OMP_INGESTION: 'async', OMP_SEARCH_MODE: 'keyword' };
  expect(mistakesOf({ env })).toEqual([
    'ingestion cannot be async while search.mode is keyword: there are no vectors to compute later',
  ]);
  expect(mistakesOf({ env: { ...env, OMP_INGESTION: 'sync' } })).toEqual([]);
});
