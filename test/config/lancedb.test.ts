import { expect, it } from 'vitest';
import { load, mistakesOf } from './sources.ts';

const LANCEDB = { OMP_PROVIDER: 'lancedb' };

it.each([
  [{ OMP_LANCEDB_FOLDER: 's3://bucket/memories' }, /^OMP_LANCEDB_FOLDER must be a path, no address/],
  [{ OMP_LANCEDB_TABLE: '-b' }, /^OMP_LANCEDB_TABLE must be letters, digits, _, \. and -/],
  [{ OMP_SEARCH_MODE: 'hybrid' }, /must be vector while provider is lancedb/],
])('lancedb with %j is a mistake that says what is allowed', (env, message) => {
  expect(mistakesOf({ env: { ...LANCEDB, ...env } })).toEqual([expect.stringMatching(message)]);
});

it('two stores cannot be one table of one folder', () => {
  const stores = (folder: string) => ({
    OMP_STORES: JSON.stringify({ other: { mount: 'other', provider: 'lancedb', lancedb: { folder } } }),
  });
  const env = { ...LANCEDB, OMP_DATA_DIR: '/data' };
  expect(mistakesOf({ env: { ...env, ...stores('/data/lancedb/') } })).toEqual([
    expect.stringMatching(/folder and table/),
  ]);
  expect(load({ env: { ...env, ...stores('/data/another') } }).config.stores).toHaveLength(1);
});
