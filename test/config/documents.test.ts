import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { helpText } from '../../src/cli/arguments.ts';
import { exampleFile } from '../../src/config/documents.ts';
import { SETTINGS, settingFor } from '../../src/config/schema-reader.ts';
import { configSchema } from '../../src/config/settings.ts';
import { load, mistakesOf } from './sources.ts';

const EXAMPLE = new URL('../../omp-gateway.example.yaml', import.meta.url);

describe('the settings', () => {
  it('are every leaf of the schema', () => {
    const leaves = (value: object, prefix = ''): string[] =>
      Object.entries(value).flatMap(([name, inner]) =>
        typeof inner === 'object' && !Array.isArray(inner) ? leaves(inner, `${prefix}${name}.`) : [prefix + name],
      );
    const keys = SETTINGS.map(({ key }) => key);
    expect(keys).toEqual(expect.arrayContaining(leaves(configSchema.parse({}))));
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(SETTINGS.map(({ env }) => env)).size).toBe(keys.length);
  });

  it('depend only on choices that exist', () => {
    const wrong = SETTINGS.filter(({ only, unless, except }) => {
      if (unless !== undefined && settingFor(unless) === undefined) return true;
      return [only, except].some(([key, ...values] = ['provider']) =>
        values.length === 0
          ? settingFor(key) === undefined
          : values.some((value) => settingFor(key)?.schema.safeParse(value).success !== true),
      );
    });
    expect(wrong).toEqual([]);
  });
});

/** The setting stays unset. */
const OFF = 'unset';

/** Whether a setting has an effect with these choices. */
function applies(key: string, choices: Readonly<Record<string, string>>): boolean {
  const {
    only: [condition = '', ...values] = [],
    unless,
    except: [choosing = '', ...others] = [],
  } = settingFor(key) ?? {};
  if (unless !== undefined && choices[unless] !== OFF) return false;
  if (others.includes(choices[choosing] ?? '')) return false;
  const choice = choices[condition];
  if (choice === OFF || (choice !== undefined && values.length > 0 && !values.includes(choice))) return false;
  return condition === '' || applies(condition, choices);
}

describe('the example file', () => {
  const example = readFileSync(EXAMPLE, 'utf8');

  it('is what the schema makes of it (update with `vitest run test/config -u`)', async () => {
    await expect(exampleFile()).toMatchFileSnapshot('../../omp-gateway.example.yaml');
  });

  it('is valid and changes nothing', () => {
    expect(load({ yaml: example })).toEqual(load({}));
  });

  const env = {
    OPENAI_API_KEY: 'sk-1',
    POSTGRES_PASSWORD: 'p',
    REDIS_PASSWORD: 'r',
    PINECONE_API_KEY: 'p',
    OMP_LIBSQL_AUTH_TOKEN: 'p',
    CHROMA_TOKEN: 'p',
    QDRANT_API_KEY: 'p',
    OMP_MILVUS_TOKEN: 'p',
    OMP_WEAVIATE_API_KEY: 'p',
    WEBHOOK_SECRET: 'x'.repeat(32),
  };
  const postgres = { provider: 'postgres', 'mapping.preset': OFF };
  const vectors = {
    'embedding.kind': 'local',
    'search.mode': 'vector',
    'audit.record': 'off',
    'versions.keep': 'off',
    'rate_limit.store': 'memory',
  };

  it.each([
    { ...postgres, 'embedding.kind': 'local', 'rate_limit.store': 'postgres' },
    { ...postgres, 'embedding.kind': 'openai', 'rate_limit.store': 'redis' },
    { ...postgres, ...vectors, 'mapping.preset': 'custom' },
    { provider: 'memory', 'embedding.kind': 'local', 'rate_limit.store': 'memory' },
    { provider: './provider.js', 'embedding.kind': 'local', 'rate_limit.store': 'memory' },
    { provider: 'pinecone', ...vectors, 'pinecone.preset': OFF },
    { provider: 'pinecone', ...vectors, 'pinecone.preset': 'custom' },
    { provider: 'lancedb', ...vectors, 'lancedb.preset': OFF },
    { provider: 'lancedb', ...vectors, 'lancedb.preset': 'custom' },
    { provider: 'libsql', ...vectors },
    { provider: 'qdrant', ...vectors, 'qdrant.preset': OFF },
    { provider: 'qdrant', ...vectors, 'qdrant.preset': 'custom' },
    { provider: 'chroma', ...vectors, 'chroma.preset': OFF },
    { provider: 'chroma', ...vectors, 'chroma.preset': 'custom' },
    { provider: 'milvus', ...vectors, 'milvus.preset': OFF },
    { provider: 'milvus', ...vectors, 'milvus.preset': 'custom' },
    { provider: 'weaviate', ...vectors },
  ])('is valid with every setting that applies to %j', (choices: Record<string, string>) => {
    let section = '';
    const shown: string[] = [];
    const lines = example.split('\n').map((line) => {
      section = /^(\w+):$/.exec(line)?.[1] ?? section;
      const [, indent, name] = /^( *)#?(\w+):(?: |$)/.exec(/^\w+:$/.test(line) ? '' : line) ?? [];
      // The entries of a list.
      if (indent === undefined || name === undefined) return line.replace(/^( *)#-/, '$1-');
      const key = indent === '' ? name : `${section}.${name}`;
      shown.push(key);
      if (choices[key] === OFF) return line;
      if (choices[key] !== undefined) return `${indent}${name}: ${choices[key]}`;
      return applies(key, choices) ? line.replace('#', '') : line;
    });
    expect(shown).toEqual(SETTINGS.map(({ key }) => key));
    expect(mistakesOf({ env, yaml: lines.join('\n') })).toEqual([]);
  });
});

describe('help', () => {
  const help = helpText();

  it.each(SETTINGS.map((setting) => [setting.env, setting] as const))('explains %s', (_, setting) => {
    expect(help).toContain(`\n  ${setting.env} (${setting.key}`);
    if (setting.default !== undefined)
      expect(help).toContain(`(${setting.key}, default ${setting.default})${setting.essential ? ' *' : ''}\n`);
    if (setting.secret) expect(help.replace(/\s+/g, ' ')).toContain(`${setting.env}_FILE may name a file`);
    if (setting.flag !== undefined) expect(help).toContain(`\n  --${setting.flag} VALUE`);
  });

  it('fits 80 columns', () => {
    expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });
});
