import { expect, it } from 'vitest';
import { Options } from '../../providers/collections/qdrant.ts';
import { settingFor } from '../../src/config/schema-reader.ts';
import { load, mistakesOf } from './sources.ts';

const THREE = { OMP_PROVIDER: 'qdrant', QDRANT_URL: 'https://q.example.com:6333', QDRANT_API_KEY: 'a-key' };

it('qdrant takes three variables; every default is the one of the provider', () => {
  const { QDRANT_URL: url, QDRANT_API_KEY: api_key } = THREE;
  expect(load({ env: THREE }).config.qdrant).toEqual(Options.parse({ url, api_key }));
  expect(load({ env: { OMP_PROVIDER: 'qdrant' } }).config.qdrant).toEqual(Options.parse({}));
});

it('qdrant has a setting for every option', () => {
  expect(Object.keys(Options.shape).filter((name) => settingFor(`qdrant.${name}`) === undefined)).toEqual([]);
});

it.each([
  [{ QDRANT_URL: 'q.example.com' }, /^QDRANT_URL must be an http:\/\/ or https:\/\/ URL/],
  [{ QDRANT_API_KEY: 'a key' }, /^QDRANT_API_KEY must be printable ASCII/],
  [{ OMP_QDRANT_COLLECTION: 'a/b' }, /^OMP_QDRANT_COLLECTION must be 1 to 255 characters without/],
  [{ OMP_SEARCH_MODE: 'hybrid' }, /must be vector while provider is qdrant/],
  [{ OMP_VERSIONS_MAX: '7' }, /no versions are kept/],
])('qdrant with %j is a mistake that says what is allowed', (env, message) => {
  expect(mistakesOf({ env: { ...THREE, ...env } })).toEqual([expect.stringMatching(message)]);
});

it('two stores cannot be one collection of one server', () => {
  const qdrant = { url: THREE.QDRANT_URL };
  const store = (more: object) =>
    JSON.stringify({ other: { mount: 'other', provider: 'qdrant', qdrant: { ...qdrant, ...more } } });
  expect(mistakesOf({ env: { ...THREE, OMP_STORES: store({}) } })).toEqual([
    expect.stringMatching(/server and collection/),
  ]);
  expect(load({ env: { ...THREE, OMP_STORES: store({ collection: 'another' }) } }).config.stores).toHaveLength(1);
});

it.each(['file::memory:', 'file:x.db?mode=memory'])('libsql keeps nothing in %s', (url) => {
  expect(mistakesOf({ env: { OMP_PROVIDER: 'libsql', OMP_LIBSQL_URL: url } })).toEqual([
    expect.stringMatching(/^OMP_LIBSQL_URL must be an address .* file: and a path/),
  ]);
});

it.each([
  ['QDRANT_URL', 'qdrant', ['https://me:secret@q.example.com', 'http://q.example.com?api-key=secret']],
  ['OMP_LIBSQL_URL', 'libsql', ['libsql://me:secret@db.turso.io', 'libsql://db.turso.io?tls=1&authToken=secret']],
])('%s takes no secrets: they would be ignored, or shown with the address', (name, provider, urls) => {
  for (const url of urls) {
    const env = { OMP_PROVIDER: provider, [name]: url };
    expect(() => load({ env })).toThrow(new RegExp(`^(?!.*secret)[^]*${name} must be [^]* user`));
  }
});
