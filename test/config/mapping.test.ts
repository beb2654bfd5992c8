import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FIELDS, parseColumnReference } from '../../providers/postgres/mapped/field-mapping.ts';
import { Mapping } from '../../providers/postgres/mapped/mapping.ts';
import { PRESET_NAMES } from '../../providers/postgres/mapped/presets.ts';
import { providerOptions } from '../../src/config/config-options.ts';
import { mapping as schema } from '../../src/config/mapping-settings.ts';
import { settingFor } from '../../src/config/schema-reader.ts';
import { load, mistakesOf } from './sources.ts';

const NEEDED = {
  DATABASE_URL: 'postgres://gateway:secret@db.example.com/app',
  OMP_MAPPING_PRESET: 'custom',
  OMP_EMBEDDER: 'openai',
  OMP_EMBEDDING_MODEL: 'text-embedding-3-small',
  OPENAI_API_KEY: 'sk-1',
};
const with4 = (env: Record<string, string>) => ({ env: { ...NEEDED, ...env } });

describe('the mapping of a table', () => {
  it('has a setting for every option of the provider', () => {
    expect(Object.keys(Mapping.shape).sort()).toEqual(Object.keys(schema.shape).sort());
    for (const name of Object.keys(Mapping.shape)) {
      expect(settingFor(`mapping.${name}`)?.env).toBe(`OMP_MAPPING_${name.toUpperCase()}`);
    }
    expect(settingFor('mapping.preset')?.allowed).toBe(`one of ${PRESET_NAMES.join(', ')}`);
    expect(Object.keys(schema.shape)).toEqual(expect.arrayContaining([...FIELDS]));
  });

  it('reaches the provider as it was written, with the defaults of the provider', () => {
    const written = { table: 'My Notes', id: '"Id"', content: `doc->'a'->>'it''s'`, user_id: `'shared'` };
    const env = Object.fromEntries(
      Object.entries(written).map(([key, value]) => [`OMP_MAPPING_${key.toUpperCase()}`, value]),
    );
    const { mapping } = providerOptions(load(with4(env)).config) as { mapping: unknown };
    expect(mapping).toEqual(Mapping.parse({ preset: 'custom', ...written }));
  });

  it('is undefined without a preset', () => {
    expect(providerOptions(load({ env: {} }).config)).not.toHaveProperty('mapping');
    expect(mistakesOf({ env: { OMP_MAPPING_TABLE: 'notes', OMP_MAPPING_WRITABLE: 'true' } })).toEqual([
      'OMP_MAPPING_TABLE has no effect while mapping.preset is not set',
      'OMP_MAPPING_WRITABLE has no effect while mapping.preset is not set',
    ]);
  });

  it('requires server, embedder and model', () => {
    expect(mistakesOf({ env: { OMP_MAPPING_PRESET: 'mem0' } })).toEqual([
      'postgres.url (DATABASE_URL or DATABASE_URL_FILE) is required while mapping.preset is set: the mapped table is on a server',
      'embedding.kind (OMP_EMBEDDER) is required while mapping.preset is set: it must be the embedder that made the vectors of the table',
    ]);
    const { OMP_EMBEDDING_MODEL: _, ...rest } = NEEDED;
    expect(mistakesOf({ env: rest })).toEqual([
      'embedding.model (OMP_EMBEDDING_MODEL) is required while mapping.preset is set: it must be the model that made the vectors of the table',
    ]);
  });

  it('rejects settings that a mapped table does not support', () => {
    const env = {
      OMP_SEARCH_MODE: 'hybrid',
      OMP_AUDIT: 'writes',
      OMP_AUDIT_RETENTION_DAYS: '3',
      OMP_RATE_LIMIT_PER_MINUTE: '9',
      OMP_RATE_LIMIT_STORE: 'postgres',
      OMP_POSTGRES_SCHEMA: 'mine',
    };
    expect([...mistakesOf(with4(env))].sort()).toEqual([
      'OMP_AUDIT has no effect while mapping.preset is set, where no audit log is kept',
      'OMP_AUDIT_RETENTION_DAYS has no effect while mapping.preset is set, where no audit log is kept',
      'OMP_POSTGRES_SCHEMA has no effect while mapping.preset is custom',
      'OMP_SEARCH_MODE must be vector while mapping.preset is set, which is searched by vectors alone',
      'rate_limit.store cannot be postgres while mapping.preset is set: the gateway makes no tables in that database',
    ]);
    expect(mistakesOf(with4({ OMP_SEARCH_MODE: 'vector', OMP_AUDIT: 'off' }))).toEqual([]);
  });

  it.each([
    ['OMP_MAPPING_ID', `meta->>'id'`],
    ['OMP_MAPPING_EMBEDDING', 'a b'],
    ['OMP_MAPPING_TAGS', 'lower(tags)'],
    ['OMP_MAPPING_USER_PATTERN', 'memories'],
    ['OMP_MAPPING_USER_PATTERN', '{user}{user}'],
    ['OMP_MAPPING_TABLE', 'ä'.repeat(32)],
    ['OMP_MAPPING_PRESET', 'langchain'],
    ['OMP_MAPPING_NEW_IDS', 'serial'],
  ])('rejects %s=%s', (name, value) => {
    expect(mistakesOf(with4({ [name]: value }))).toEqual([expect.stringMatching(`^${name} must be `)]);
  });
});

const column = (name: string) => ({ kind: 'column', column: name });
const path = (name: string, ...keys: string[]) => ({ kind: 'path', column: name, path: keys });

describe('a column reference', () => {
  it.each([
    ['created_at', column('created_at')],
    // The case is kept.
    ['pageContent', column('pageContent')],
    ['"pageContent"', column('pageContent')],
    ['"a ""b"" \'c\' -> d"', column(`a "b" 'c' -> d`)],
    ['$x', undefined],
    ['x$1', column('x$1')],
    [`metadata->>'user_id'`, path('metadata', 'user_id')],
    // Either arrow at the end.
    [`metadata->'user_id'`, path('metadata', 'user_id')],
    [`"Meta Data"->'a'->>'it''s'`, path('Meta Data', 'a', `it's`)],
    [`m->''`, path('m', '')],
    [`'shared'`, { kind: 'constant', value: 'shared' }],
    [`'it''s'`, { kind: 'constant', value: `it's` }],
    [`''`, { kind: 'constant', value: '' }],
    ['', undefined],
    ['a b', undefined],
    ['a.b', undefined],
    ['1a', undefined],
    ['"a', undefined],
    ['""', undefined],
    [`a -> 'b'`, undefined],
    [`a->b`, undefined],
    [`a->1`, undefined],
    [`a->'b`, undefined],
    [`a#>>'{b}'`, undefined],
    [`'a' || 'b'`, undefined],
    [`'a'b'`, undefined],
    ['lower(a)', undefined],
    [`a; drop table a`, undefined],
    ['a\0', undefined],
    ['"a\0"', undefined],
  ])('%s', (text, reference) => {
    expect(parseColumnReference(text)).toEqual(reference);
  });

  it('can name every column and every key', () => {
    const name = fc.string({ unit: 'binary', minLength: 1 }).filter((text) => !text.includes('\0'));
    const quoted = (text: string, quote: string) => quote + text.replaceAll(quote, quote + quote) + quote;
    fc.assert(
      fc.property(name, fc.array(name), (each, keys) => {
        const text = `${quoted(each, '"')}${keys.map((key) => `->${quoted(key, "'")}`).join('')}`;
        expect(parseColumnReference(text)).toEqual(keys.length === 0 ? column(each) : path(each, ...keys));
        expect(parseColumnReference(quoted(each, "'"))).toEqual({ kind: 'constant', value: each });
      }),
    );
  });
});
