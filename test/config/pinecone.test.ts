import { describe, expect, it } from 'vitest';
import { Options } from '../../providers/pinecone/pinecone-options.ts';
import { settingFor } from '../../src/config/schema-reader.ts';
import { load, mistakesOf } from './sources.ts';

const KEY = 'pcsk_not-a-real-one';
const HOST = 'memories-abc1234.svc.aped-4627-b74a.pinecone.io';
const THREE = { OMP_PROVIDER: 'pinecone', PINECONE_API_KEY: KEY, PINECONE_INDEX_HOST: HOST };
const with3 = (env: Record<string, string>, yaml?: string) => ({
  env: { ...THREE, ...env },
  ...(yaml !== undefined && { yaml }),
});

describe('pinecone', () => {
  it('takes three variables; every default is the one of the provider', () => {
    const { max_waiting: _, ...options } = Options.parse({ api_key: KEY, index_host: HOST });
    expect(load({ env: THREE }).config.pinecone).toEqual(options);
  });

  it('has a setting for every option of the provider but the length of its queue', () => {
    expect(Object.keys(Options.shape).filter((name) => settingFor(`pinecone.${name}`) === undefined)).toEqual([
      'max_waiting',
    ]);
  });

  it.each<[string, Record<string, string | number | boolean>]>([
    ['the gateway’s index', { layout: 'per-user', consistency_wait_ms: 0, max_scan: 7 }],
    [
      'a mapped index',
      {
        preset: 'custom',
        text_field: 'a',
        user_field: 'b',
        created_field: 'c.d',
        updated_field: 'e',
        tags_field: 'f',
        writable: true,
        max_listed: 9,
      },
    ],
  ])('has variables for all options of %s', (_, options) => {
    const all = { ...options, namespace: 'mem', metric: 'euclidean', timeout_ms: 1, settle_ms: 0 };
    const env = Object.fromEntries(
      Object.entries(all).map(([name, value]) => [`OMP_PINECONE_${name.toUpperCase()}`, String(value)]),
    );
    expect(load(with3(env)).config.pinecone).toMatchObject(all);
  });

  it('requires key and host, and shows no key', () => {
    expect(mistakesOf({ env: { OMP_PROVIDER: 'pinecone' } })).toEqual([
      'pinecone.api_key (PINECONE_API_KEY or PINECONE_API_KEY_FILE) is required while provider is pinecone',
      'pinecone.index_host (PINECONE_INDEX_HOST) is required while provider is pinecone',
    ]);
    const [mistake] = mistakesOf(with3({ PINECONE_API_KEY: `${KEY} ${KEY}` }));
    expect(mistake).toMatch(/^PINECONE_API_KEY must be printable ASCII/);
    expect(mistake).not.toContain('pcsk');
    const files = { '/run/secrets/key': `${KEY}\n` };
    const env = { OMP_PROVIDER: 'pinecone', PINECONE_API_KEY_FILE: '/run/secrets/key', PINECONE_INDEX_HOST: HOST };
    expect(load({ env, files }).config.pinecone.api_key).toBe(KEY);
  });

  it.each([
    HOST,
    `https://${HOST}`,
    `https://${HOST}/`,
    'http://127.0.0.1:5081',
    'http://[::1]:5081',
    'localhost:5081',
  ])('%j is a host', (host) => {
    expect(load(with3({ PINECONE_INDEX_HOST: host })).config.pinecone.index_host).toBe(host);
  });

  it.each([`https://${HOST}/vectors`, `ftp://${HOST}`, 'a b', 'https://', `${HOST}?x`, `user@${HOST}`])(
    '%j is no host',
    (host) => {
      expect(mistakesOf(with3({ PINECONE_INDEX_HOST: host }))).toEqual([
        expect.stringMatching(/^PINECONE_INDEX_HOST must be a host name/),
      ]);
    },
  );

  it.each([
    ['OMP_PINECONE_NAMESPACE', 'ü', {}],
    ['OMP_PINECONE_NAMESPACE', 'n'.repeat(401), {}],
    ['OMP_PINECONE_LAYOUT', 'flat', {}],
    ['OMP_PINECONE_TIMEOUT_MS', '0', {}],
    ['OMP_PINECONE_SETTLE_MS', '-1', {}],
    ['OMP_PINECONE_MAX_SCAN', '0', {}],
    ['OMP_PINECONE_PRESET', 'lang-chain', {}],
    ['OMP_PINECONE_TEXT_FIELD', '$text', { OMP_PINECONE_PRESET: 'custom' }],
    ['OMP_PINECONE_WRITABLE', 'yes', { OMP_PINECONE_PRESET: 'custom' }],
    ['OMP_PINECONE_MAX_LISTED', '10001', { OMP_PINECONE_PRESET: 'custom' }],
  ])('takes no %s=%j', (name, value, more) => {
    expect(mistakesOf(with3({ ...more, [name]: value }))).toEqual([expect.stringMatching(`^${name} must be `)]);
  });
});

describe('what has no effect on pinecone is a mistake', () => {
  it('of the gateway’s index beside a preset, and the other way round', () => {
    const own = ['LAYOUT=single', 'CONSISTENCY_WAIT_MS=1', 'MAX_SCAN=1'];
    const existing = [
      ...['TEXT', 'USER', 'CREATED', 'UPDATED', 'TAGS'].map((field) => `${field}_FIELD=x`),
      'WRITABLE=false',
      'MAX_LISTED=1',
    ];
    const set = (pairs: readonly string[]) =>
      Object.fromEntries(pairs.map((pair) => `OMP_PINECONE_${pair}`.split('=') as [string, string]));
    expect(mistakesOf(with3({ OMP_PINECONE_PRESET: 'mem0', ...set(own) }))).toEqual(
      Object.keys(set(own)).map((name) => `${name} has no effect while pinecone.preset is mem0`),
    );
    expect(mistakesOf(with3(set(existing)))).toEqual(
      Object.keys(set(existing)).map((name) => `${name} has no effect while pinecone.preset is not set`),
    );
  });

  it('but is not reported where the preset is a mistake', () => {
    const env = { OMP_PINECONE_PRESET: 'mem', OMP_PINECONE_LAYOUT: 'single', OMP_PINECONE_WRITABLE: 'true' };
    expect(mistakesOf(with3(env))).toEqual([expect.stringMatching(/^OMP_PINECONE_PRESET must be /)]);
  });

  it('of search: it finds by vectors alone', () => {
    const because = 'while provider is pinecone, which is searched by vectors alone';
    for (const mode of ['keyword', 'hybrid']) {
      expect(mistakesOf(with3({ OMP_SEARCH_MODE: mode }))).toEqual([`OMP_SEARCH_MODE must be vector ${because}`]);
    }
    expect(mistakesOf(with3({}, 'search:\n  mode: hybrid\n  keyword_weight: 0.1\n'))).toEqual([
      `search.mode in gateway.yaml must be vector ${because}`,
      `search.keyword_weight in gateway.yaml has no effect ${because}`,
    ]);
    expect(load(with3({ OMP_SEARCH_MODE: 'vector' })).config.search.mode).toBe('vector');
    expect(load({ env: THREE }).config.search.mode).toBe('hybrid');
  });

  it('of the audit log: it keeps none', () => {
    const because = 'has no effect while provider is pinecone, where no audit log is kept';
    expect(mistakesOf(with3({ OMP_AUDIT: 'writes', OMP_AUDIT_RETENTION_DAYS: '1' }))).toEqual([
      `OMP_AUDIT ${because}`,
      `OMP_AUDIT_RETENTION_DAYS ${because}`,
    ]);
    expect(mistakesOf(with3({ OMP_AUDIT: 'off' }))).toEqual([]);
  });

  it('unless it is a variable and another provider is configured', () => {
    const idle = { PINECONE_API_KEY: 'a b', PINECONE_API_KEY_FILE: '/missing', PINECONE_INDEX_HOST: '?' };
    const env = { ...idle, OMP_PINECONE_TEXT_FIELD: '$', OMP_PINECONE_LAYOUT: '?', OMP_PINECONE_PRESET: '?' };
    expect(load({ env: { OMP_PROVIDER: 'memory', ...env } })).toEqual(load({ env: { OMP_PROVIDER: 'memory' } }));
    expect(mistakesOf({ env: { OMP_PROVIDER: 'memory' }, yaml: 'pinecone:\n  text_field: x\n' })).toEqual([
      'pinecone.text_field in gateway.yaml has no effect while provider is memory',
    ]);
  });
});
