import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Call, type Embedder, type UsageMeter } from '#contract';
import { openEmbedder } from '../../src/embedding/open.ts';
import { recordingLog } from '../support/subject.ts';
import { embeddingsServer, failing, sendJson, vectorOf } from './embeddings-server.ts';

let service: Awaited<ReturnType<typeof embeddingsServer>>;
let embedder: Embedder;
beforeEach(async () => {
  // No day ends within a test.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  service = await embeddingsServer();
  const options = { model: 'm', dimensions: undefined, base_url: service.base_url, api_key: '', timeout_ms: 600_000 };
  embedder = await openEmbedder({ kind: 'openai', ...options, batch_size: 8, cache_size: 10 }, recordingLog());
  embedder.usage?.take();
});
afterEach(async () => {
  await embedder.close();
  await service.close();
  vi.useRealTimers();
});

const by = (app: string | null) => new Call('request', { id: `key:${app}`, app });
const used = () => (embedder.usage as UsageMeter).take().map(({ day: _, model: __, ...row }) => row);

it('[Decision 63] the start asks the service once, for the gateway itself', async () => {
  expect(embedder.usage?.totals()).toMatchObject({ texts: 1, tokens: 1, requests: 1 });
  expect(used()).toEqual([]);
});

it('[Decision 63] callers who share a request share its tokens by the length of their texts', async () => {
  service.answer = ({ input }, response) => {
    const data = input.map((text, index) => ({ index, embedding: vectorOf(text, 8) }));
    sendJson(response, 200, { data, usage: { prompt_tokens: 10, total_tokens: 10 } });
  };
  await Promise.all([
    embedder.embed(['four'], 'document', by('editor')),
    embedder.embed(['sixteen letters.'], 'document', by(null)),
  ]);
  expect(service.received.at(-1)?.input).toHaveLength(2);
  expect(used()).toEqual([
    { app: 'editor', texts: 1, tokens: 2, requests: 1 },
    { app: null, texts: 1, tokens: 8, requests: 0 },
  ]);
});

it('[Decision 63] a query whose vector is cached costs nothing', async () => {
  await embedder.embed(['tea'], 'query', by('editor'));
  expect(used()).toHaveLength(1);
  await embedder.embed(['tea'], 'query', by('editor'));
  expect(used()).toEqual([]);
});

it('[Decision 63] retries and failures count as requests, without texts and tokens', async () => {
  service.answer = failing(500);
  await expect(embedder.embed(['tea'], 'document', by('editor'))).rejects.toThrow();
  expect(used()).toEqual([{ app: 'editor', texts: 0, tokens: 0, requests: 2 }]);
  service.answer = failing(429);
  await expect(embedder.embed(['tea'], 'document', by('editor'))).rejects.toThrow();
  expect(used()).toEqual([{ app: 'editor', texts: 0, tokens: 0, requests: 1 }]);
});

it('[Decision 63] a request that did not reach the service does not count', async () => {
  await service.close();
  const embed = () => embedder.embed(['tea'], 'document', by('editor'));
  // May be sent on the connection that the service has just closed.
  await expect(embed()).rejects.toThrow();
  used();
  await expect(embed()).rejects.toThrow();
  expect(used()).toEqual([]);
});

it.each([
  ['nothing', {}, null],
  ['only prompt_tokens', { usage: { prompt_tokens: 5 } }, 5],
])('[Decision 63] a service may report %s', async (_, usage, tokens) => {
  service.answer = ({ input }, response) =>
    sendJson(response, 200, { data: input.map((text, index) => ({ index, embedding: vectorOf(text, 8) })), ...usage });
  await embedder.embed(['tea'], 'document', by('editor'));
  expect(used()).toEqual([{ app: 'editor', texts: 1, tokens, requests: 1 }]);
});

it('[Decision 63] the bundled model costs nothing', async () => {
  const local = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, recordingLog());
  await local.close();
  expect(local.usage).toBeUndefined();
});
