import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Finding, MaintenanceContext } from '#contract';
import { diagnose } from '../../src/registry.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { contextOf } from '../support/requests.ts';
import { openGateway } from './gateways.ts';

const KEY = 'pcsk_very-secret';
let server: Pinecone;
let old: Pinecone;
beforeAll(async () => {
  [server, old] = await Promise.all([startPinecone(), startPinecone({ apiVersion: '2025-01', lsn: false })]);
});
afterAll(() => Promise.all([server, old].map((each) => each?.close())));

const look = async (options: object, more: Partial<MaintenanceContext> = {}): Promise<string[]> => {
  const context = contextOf({ embedder: hashingEmbedder(), ranking: { mode: 'vector', keyword_weight: 0 }, ...more });
  const found = (await diagnose(
    'pinecone',
    { api_key: KEY, index_host: server.url, ...options },
    context,
  )) as Finding[];
  expect(JSON.stringify(found)).not.toMatch(/very-secret|127\.0\.0\.1/);
  return found.map(({ area, level, message }) => `${level} ${area}: ${message}`);
};

it('an index without a description is left without one', async () => {
  const namespace = 'untouched';
  await server.resetCalls();
  expect(await look({ namespace })).toEqual([
    'ok connection: the index on Pinecone answers, and measures by cosine; whether the key may write was not tried',
    'ok embedding: the vectors in the namespace "untouched" are none yet: the gateway records the model at its first start',
  ]);
  expect((await server.calls()).map(({ operation }) => operation)).toEqual(['stats', 'fetch']);
  expect(await server.records(namespace)).toEqual({});
});

it('an index of ours is held against the embedder', async () => {
  const namespace = 'ours';
  await (await openGateway(server, { options: { namespace } })).close();
  expect(await look({ namespace })).toContain(
    'ok embedding: the vectors in the namespace "ours" are made by "test-trigram-hashing"',
  );
  expect(await look({ namespace }, { embedder: { ...hashingEmbedder(), model: 'another' } })).toEqual([
    expect.stringMatching(/^problem connection: .*"test-trigram-hashing".*"another"/),
  ]);
  expect(await look({ namespace }, { embedder: hashingEmbedder(32) })).toEqual([
    expect.stringMatching(/^problem connection: .*64 dimensions.*32/),
  ]);
  expect(await look({ namespace }, { embedder: undefined })).toEqual([
    'ok connection: the index on Pinecone answers; its vectors were not compared with the embedder, which does not answer',
  ]);
});

it('an index that somebody else fills is asked as the gateway asks', async () => {
  expect(await look({ preset: 'langchain', namespace: 'n' })).toEqual([
    'ok connection: the index on Pinecone answers, and measures by cosine',
    'ok mapping: its records can be found by "user_id"',
    'ok embedding: vectors of 64 dimensions; the index does not say whether "test-trigram-hashing" made them',
  ]);
  expect(await look({ preset: 'langchain', namespace: 'n', index_host: old.url })).toContain(
    'warning mapping: it has an API older than 2025-10 and cannot list the memories of a user',
  );
  expect(await look({ preset: 'mem0', namespace: 'n', writable: true })).toEqual([
    expect.stringMatching(/^problem connection: .*OMP_PINECONE_WRITABLE/),
  ]);
});

it('an index that does not answer is a problem, told as at the start', async () => {
  expect(await look({ index_host: 'http://127.0.0.1:1' })).toEqual([
    expect.stringMatching(/^problem connection: Pinecone cannot be reached.*PINECONE_INDEX_HOST/),
  ]);
});
