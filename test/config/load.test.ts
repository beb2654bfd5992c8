import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { embeddingOptions, providerOptions } from '../../src/config/config-options.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/mistakes.ts';
import type { EmbeddingOptions } from '../../src/embedding/open.ts';
import { load, mistakesOf } from './sources.ts';

describe('precedence', () => {
  const yaml = 'port: 1\nhost: file\ndata_dir: file\n';

  it('is command line, environment, file, default', () => {
    const env = { OMP_PORT: '2', OMP_HOST: 'environment' };
    const { config } = load({ flags: { port: '3' }, env, yaml });
    expect(config).toMatchObject({ port: 3, host: 'environment', data_dir: 'file', log_level: 'info' });
  });

  it('lets --config win over OMP_CONFIG', () => {
    const files = { 'a.yaml': 'port: 1', 'b.yaml': 'port: 2' };
    expect(load({ flags: { config: 'a.yaml' }, env: { OMP_CONFIG: 'b.yaml' }, files }).config.port).toBe(1);
  });

  it('checks only the value in effect', () => {
    expect(load({ yaml: 'port: none', env: { OMP_PORT: '2' } }).config.port).toBe(2);
  });

  it('takes an empty variable and a key without value as unset, but not an empty flag', () => {
    expect(load({ env: { OMP_PORT: '', OMP_HOST: '', DATABASE_URL: '', OMP_CONFIG: '' } })).toEqual(load({}));
    expect(load({ yaml: 'port:\nsearch:\n' })).toEqual(load({}));
    expect(mistakesOf({ flags: { port: '' } })).toEqual(["--port must be an integer from 0 to 65535, not ''"]);
  });
});

describe('mistakes', () => {
  const written = {
    flags: { port: '70000' },
    env: { OMP_LOG_LEVEL: 'loud', OMP_KEYWORD_WEIGHT: '1.5', OMP_MAX_REQUESTS: 'many' },
    yaml: 'provider: postgress\nprot: 1\nsearch:\n  mode: hybrid\n  kewyord_weight: 1\nmax_request_bytes: 1\nmemory: 5\n',
  };

  it('are reported all at once, each under the name the user wrote', () => {
    expect([...mistakesOf(written)].sort()).toEqual([
      "--port must be an integer from 0 to 65535, not '70000'",
      "OMP_KEYWORD_WEIGHT must be a number from 0 to 1, not '1.5'",
      "OMP_LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent, not 'loud'",
      "OMP_MAX_REQUESTS must be an integer from 1 to 1000000, not 'many'",
      'max_request_bytes in gateway.yaml must be an integer from 1024 to 104857600, not 1',
      'memory in gateway.yaml must hold settings, each as "name: value"',
      'prot in gateway.yaml is not a setting; did you mean port?',
      "provider in gateway.yaml must be one of postgres, pinecone, memory, lancedb, libsql, milvus, qdrant, chroma, weaviate, the name of an installed package, or a path such as ./provider.js, not 'postgress'",
      'search.kewyord_weight in gateway.yaml is not a setting; did you mean search.keyword_weight?',
    ]);
  });

  it('are all in the message of one ConfigError', () => {
    const mistakes = mistakesOf(written);
    const message = `The configuration has 9 mistakes:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`;
    expect(() => load(written)).toThrow(new ConfigError(mistakes));
    expect(new ConfigError(mistakes).message).toBe(message);
  });

  it.each([
    ['OMP_PORT', ['0'], ['-1', '80.5']],
    ['OMP_MAX_REQUEST_BYTES', ['104857600'], ['1023']],
    ['OMP_REQUEST_TIMEOUT_MS', ['1'], ['0']],
    ['OMP_POSTGRES_CONNECTIONS', ['100'], ['101']],
    ['OMP_POSTGRES_SCHEMA', ['é'.repeat(31), 'my "schema"; --'], ['é'.repeat(32), 'a\0b']],
    ['OMP_KEYWORD_WEIGHT', ['1'], ['1.1']],
    ['OMP_SEARCH_MODE', ['hybrid'], ['Hybrid']],
    [
      'DATABASE_URL',
      ['postgresql:///omp?host=/run/postgresql', 'postgres://omp:a@/omp?host=/run', 'postgres://omp:%23%2F@db:1/omp'],
      ['mysql://localhost/omp'],
    ],
  ])('%s can be %j, not %j', (name, valid, invalid) => {
    for (const value of valid) expect(mistakesOf({ env: { [name]: value } })).toEqual([]);
    for (const value of invalid)
      expect(mistakesOf({ env: { [name]: value } })).toEqual([expect.stringMatching(`^${name} must be `)]);
  });
  it.each(
    ['DATABASE_URL', 'OMP_POSTGRES_READ_URL'].flatMap((name) => ['/', '?', '#'].map((raw) => [raw, name] as const)),
  )('[Decision 16] a raw %s in the password of %s is a mistake that names the variable and the remedy', (raw, name) => {
    const env = { DATABASE_URL: 'postgres://db', [name]: `postgres://omp:hush${raw}hush@db/omp` };
    expect(mistakesOf({ env })).toEqual([
      `${name} must be a postgres:// or postgresql:// URL with / ? # and @ of its password percent-encoded (its value is secret and not shown)`,
    ]);
  });
});

describe('embedding', () => {
  const openai = { OMP_EMBEDDER: 'openai', OPENAI_API_KEY: 'sk-1' };

  it('gives the options of either embedder', () => {
    const local: EmbeddingOptions = embeddingOptions(load({ env: { OMP_EMBEDDING_WORKERS: '2' } }).config);
    expect(local).toEqual({ kind: 'local', cache_size: 10_000, max_waiting: 1_000, workers: 2 });
    const env = { ...openai, OMP_EMBEDDING_DIMENSIONS: '256', OPENAI_BASE_URL: 'http://localhost:11434/v1' };
    const remote: EmbeddingOptions = embeddingOptions(load({ env }).config);
    expect(remote).toEqual({
      kind: 'openai',
      model: 'text-embedding-3-small',
      dimensions: 256,
      base_url: 'http://localhost:11434/v1',
      api_key: 'sk-1',
      timeout_ms: 10_000,
      batch_size: 64,
      cache_size: 10_000,
      max_waiting: 1_000,
    });
  });

  it('has a read replica only of a server that holds the memories', () => {
    const replica = { OMP_POSTGRES_READ_URL: 'postgres://replica' };
    expect(mistakesOf({ env: replica })).toEqual([
      expect.stringMatching(/^postgres\.url \(DATABASE_URL .* is required while postgres\.read_url is set/),
    ]);
    const env = { ...replica, DATABASE_URL: 'postgres://db' };
    expect(load({ env }).config.postgres).toMatchObject({ url: env.DATABASE_URL, read_url: 'postgres://replica' });
    expect(mistakesOf({ env: { ...env, OMP_POSTGRES_DISTRIBUTED: 'citus' } })).toEqual([
      expect.stringContaining('a replica of the coordinator holds no memories'),
    ]);
  });

  it('needs a key for OpenAI itself, none for another base URL', () => {
    expect(mistakesOf({ env: { OMP_EMBEDDER: 'openai' } })).toEqual([
      expect.stringMatching(/^embedding\.api_key \(OPENAI_API_KEY .* is required while embedding\.kind is openai/),
    ]);
    const { config } = load({ env: { OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: 'http://localhost:8000' } });
    expect(embeddingOptions(config)).toMatchObject({ api_key: '' });
  });

  it('accepts only http and https', () => {
    expect(mistakesOf({ env: { ...openai, OPENAI_BASE_URL: 'file:///etc/passwd' } })).toEqual([
      "OPENAI_BASE_URL must be an http:// or https:// URL, not 'file:///etc/passwd'",
    ]);
  });
});

describe('settings without effect', () => {
  it('are mistakes, in the file and in our own variables', () => {
    expect(
      mistakesOf({ yaml: 'embedding:\n  model: m\n  api_key: k\n', env: { OMP_EMBEDDING_BATCH_SIZE: '1' } }),
    ).toEqual([
      'embedding.model in gateway.yaml has no effect while embedding.kind is local',
      'embedding.api_key in gateway.yaml has no effect while embedding.kind is local',
      'OMP_EMBEDDING_BATCH_SIZE has no effect while embedding.kind is local',
    ]);
    const openai = { OMP_EMBEDDER: 'openai', OPENAI_API_KEY: 'sk-1' };
    expect(mistakesOf({ env: { ...openai, OMP_EMBEDDING_WORKERS: '2' } })).toEqual([
      'OMP_EMBEDDING_WORKERS has no effect while embedding.kind is openai',
    ]);
    expect(mistakesOf({ flags: { provider: 'memory' }, yaml: 'postgres:\n  url: postgres://db\n' })).toEqual([
      'postgres.url in gateway.yaml has no effect while provider is memory',
    ]);
    // Of providers of others.
    expect(mistakesOf({ yaml: 'provider: memory\noptions: {}\n' })).toEqual([
      'options in gateway.yaml has no effect while provider is memory',
    ]);
  });

  it('follow from a choice two levels above', () => {
    expect(
      mistakesOf({ env: { OMP_SEARCH_MODE: 'keyword' }, yaml: 'embedding:\n  kind: openai\n  model: m\n' }),
    ).toEqual([
      'embedding.kind in gateway.yaml has no effect while search.mode is keyword',
      'embedding.model in gateway.yaml has no effect while search.mode is keyword',
    ]);
  });

  it('do not include variables of another provider and names that other programs share', () => {
    const env = {
      OMP_PROVIDER: 'memory',
      DATABASE_URL: 'mysql://other',
      OMP_POSTGRES_CONNECTIONS: 'x',
      OPENAI_API_KEY: 'k',
      OPENAI_API_KEY_FILE: '/missing',
      OPENAI_BASE_URL: 'not a URL',
    };
    const { config, warnings } = load({ env });
    expect({ config, warnings }).toEqual(load({ env: { OMP_PROVIDER: 'memory' } }));
  });

  it('are not reported where the choice itself is a mistake or unreadable', () => {
    const env = { OMP_EMBEDDING_MODEL: 'm' };
    expect(mistakesOf({ env: { ...env, OMP_EMBEDDER: 'opnai' } })).toHaveLength(1);
    expect(mistakesOf({ env: { ...env, OMP_CONFIG: 'missing.yaml' } })).toHaveLength(1);
    expect(mistakesOf({ env, yaml: `embedding:\n  kind: $\{KIND}\n` })).toHaveLength(1);
  });
});

describe('unknown variables', () => {
  it('are mistakes where they are meant for the gateway, with the name that was meant', () => {
    const meant = {
      OMP_POTR: 'OMP_PORT',
      OMP_AUHT: 'OMP_AUTH',
      OMP_DATABASE_URL: 'DATABASE_URL',
      OMP_TRUSTED_PROXY: 'OMP_TRUSTED_PROXIES',
      OMP_TRUSTED_PROXYS: 'OMP_TRUSTED_PROXIES',
      OMP_MAPING_TABLE: 'OMP_MAPPING_TABLE',
      OMP_POSTGRES_URL: 'DATABASE_URL',
      OMP_SEARCH_KEYWORD_WEIGHT: 'OMP_KEYWORD_WEIGHT',
      OMP_AUTH_KEY: 'OMP_AUTH_KEYS',
      OMP_MAPPING_USERID: 'OMP_MAPPING_USER_ID',
      OMP_MAPPING_CREATEDAT: 'OMP_MAPPING_CREATED_AT',
      OMP_MAPPING_PRESETT: 'OMP_MAPPING_PRESET',
    };
    expect(mistakesOf({ env: meant })).toEqual(
      Object.entries(meant).map(([name, setting]) => `${name} is not a setting; did you mean ${setting}?`),
    );
    expect(mistakesOf({ env: { OMP_MEMORY_OWNER: 'x' } })).toEqual([
      'OMP_MEMORY_OWNER is not a setting; there is OMP_MEMORY_SCOPES',
    ]);
  });

  it('are warnings where another program may use them, and may be used by the file', () => {
    expect(load({ env: { OMP_QQQQQQ: '1', OMP_HOME: '/opt' } }).warnings).toEqual([
      'OMP_QQQQQQ is not a setting and is ignored',
      expect.stringMatching(/^OMP_HOME is not a setting and is ignored/),
    ]);
    const env = { OMP_POSTGRES_PASSWORD: 'p' };
    const { config, warnings } = load({
      env,
      yaml: `postgres:\n  url: postgres://omp:$\{OMP_POSTGRES_PASSWORD}@db/omp\n`,
    });
    expect(config.postgres.url).toBe('postgres://omp:p@db/omp');
    expect(warnings).toEqual([]);
  });

  it('of clients are ignored: the documentation sets them in the same environment', () => {
    const env = {
      OMP_URL: 'http://127.0.0.1:8080',
      OMP_KEY: 'omp_key',
      OMP_FROM_KEY: 'omp_from',
      OMP_TO_KEY: 'omp_to',
      OMP_USER_ID: 'ana',
    };
    expect(load({ env }).warnings).toEqual([]);
  });

  it('of Kubernetes and OpenMP are ignored', () => {
    const env = {
      OMP_GATEWAY_SERVICE_HOST: '10.0.0.1',
      OMP_GATEWAY_SERVICE_PORT: '8080',
      OMP_GATEWAY_SERVICE_PORT_HTTP: '8080',
      OMP_GATEWAY_PORT: 'tcp://10.0.0.1:8080',
      OMP_GATEWAY_PORT_8080_TCP_ADDR: '10.0.0.1',
      OMP_SERVICE_HOST: '10.0.0.1',
      OMP_PORT: 'tcp://10.0.0.1:8080',
      OMP_NUM_THREADS: '1',
    };
    expect(load({ env })).toEqual(load({}));
  });
});

it('reads real files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'omp-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'gateway.yaml');
  const secret = join(folder, 'url');
  writeFileSync(path, 'port: 1234\n');
  writeFileSync(secret, 'postgres://db/omp\n');
  const { config } = loadConfig({ flags: { config: path }, env: { DATABASE_URL_FILE: secret } });
  expect(config).toMatchObject({ port: 1234, postgres: { url: 'postgres://db/omp' } });
  expect(() => loadConfig({ flags: { config: folder }, env: {} })).toThrow(`${folder} cannot be read: it is a folder`);
});

describe('ingestion', () => {
  it('is synchronous by default, and reaches the provider', () => {
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
});
