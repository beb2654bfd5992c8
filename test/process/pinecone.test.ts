import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { embeddingsServer } from '../embedding/embeddings-server.ts';
import { type Pinecone, type PineconeOptions, startPinecone } from '../pinecone-server/start.ts';
import { FULL } from '../support/full.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';
import { type Ending, runProgram, startGateway } from './gateway.ts';

const KEY = 'pcsk_9cQf-not-a-real-one';

/** Dimensions of the bundled embedder and of the test service. */
const [LOCAL, QUICK] = [512, 8];

let embeddings: Awaited<ReturnType<typeof embeddingsServer>>;
beforeAll(async () => {
  embeddings = await embeddingsServer();
});
afterAll(() => embeddings.close());

async function start(options: PineconeOptions = {}): Promise<Pinecone> {
  const pinecone = await startPinecone({ dimension: QUICK, apiKey: KEY, ...options });
  onTestFinished(() => pinecone.close());
  return pinecone;
}

/** The three variables, and nothing else. */
const three = (host: string, key = KEY) => ({
  OMP_PROVIDER: 'pinecone',
  PINECONE_API_KEY: key,
  PINECONE_INDEX_HOST: host,
});
/** No model has to be loaded. */
const quick = () => ({ OMP_SEARCH_MODE: '', OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: embeddings.base_url });
const serving = (env: Record<string, string>) => startGateway({ env: { ...quick(), ...env } });

/** The error of a start that failed: without the key and without a stack trace. */
function rejection({ status, stdout, stderr }: Ending): string {
  expect({ status, stdout }).toEqual({ status: 1, stdout: expect.not.stringContaining('listens on') });
  expect(stdout + stderr).not.toContain(KEY);
  expect(stderr).not.toMatch(/\n\s+at /);
  return stderr;
}

describe('on Pinecone, three variables', () => {
  test('are enough for a gateway with every verb of Pinecone', async () => {
    const pinecone = await start({ dimension: LOCAL });
    const env = { ...three(pinecone.url), OMP_SEARCH_MODE: '', OMP_LOG_LEVEL: 'trace' };
    const { client, url, stop } = await startGateway({ env });
    expect(await client.capabilities()).toMatchObject({ provider: 'pinecone', features: { scopes: 'tags' } });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const user_id = freshUser();
    const fields = { content: 'the ferry leaves at nine', scope: 'travel/plans', tags: ['boat'], confidence: 0.5 };
    const added = await client.add({ user_id, ...fields });
    await client.add({ user_id, content: 'allergic to peanuts' });
    expect(await client.get(added.id)).toEqual(added);
    const [hit] = await client.search({ user_id, q: 'when does the boat go?', scope: 'travel' });
    expect(hit?.memory).toEqual(added);
    expect((await client.list({ user_id, scope: 'travel/*', tag: 'boat' })).items).toEqual([added]);
    expect(await client.update(added.id, { content: 'the ferry leaves at ten' })).toMatchObject({
      ...fields,
      content: 'the ferry leaves at ten',
    });
    const { text } = await client.context({ user_id, query: 'ferry', token_budget: 100 });
    expect(text).toContain('the ferry leaves at ten');
    await client.remove(added.id);
    expect((await client.ask(client.byId(added.id))).status).toBe(404);
    const { status, stdout, stderr } = await stop();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const secret of [KEY, user_id, 'ferry', new URL(pinecone.url).host]) expect(stdout).not.toContain(secret);
  });

  test.runIf(FULL)('find stored memories after a restart, with a new key, and beside another gateway', async () => {
    const pinecone = await start({ apiKey: undefined });
    const first = await serving(three(pinecone.url));
    const user_id = freshUser();
    const { id } = await first.client.add({ user_id, content: 'kept' });
    const second = await serving(three(pinecone.url, `${KEY}-rotated`));
    const other = await second.client.add({ user_id, content: 'beside it' });
    await first.stop();
    const third = await serving(three(pinecone.url, `${KEY}-rotated`));
    for (const { client } of [second, third]) {
      expect((await client.list({ user_id })).items.map((item) => item.id)).toEqual([other.id, id]);
    }
  });
});

describe('at the start, the gateway explains', () => {
  const rejected = async (env: Record<string, string>) => rejection(await runProgram({ env: { ...quick(), ...env } }));
  const nowhere = three('http://127.0.0.1:1');

  test.each<[string, () => Promise<Record<string, string>>, RegExp]>([
    ['a wrong key', async () => three((await start({ apiKey: 'another' })).url), /check PINECONE_API_KEY/],
    ['an unknown host', async () => three('index.invalid'), /cannot be reached[\s\S]*PINECONE_INDEX_HOST/],
    [
      'that the SDK would print keys and contents',
      async () => ({ ...nowhere, PINECONE_DEBUG: 'true' }),
      /unset PINECONE_DEBUG/,
    ],
    [
      'mistakes of the configuration',
      async () => ({ OMP_PROVIDER: 'pinecone', OMP_SEARCH_MODE: 'keyword' }),
      /PINECONE_API_KEY[\s\S]*PINECONE_INDEX_HOST[\s\S]*OMP_SEARCH_MODE must be vector/,
    ],
  ])('%s', async (_, envOf, expected) => {
    expect(await rejected(await envOf())).toMatch(expected);
  });

  test.runIf(FULL)('another layout than that of the index', async () => {
    const { url } = await start();
    await (await serving(three(url))).stop();
    expect(await rejected({ ...three(url), OMP_PINECONE_LAYOUT: 'sharded' })).toMatch(/"single"[\s\S]*"sharded"/);
  });
});

test.runIf(FULL)('[Decision 23] a token shows whether the write of another gateway is visible', async () => {
  const pinecone = await start();
  const [one, other] = await Promise.all([serving(three(pinecone.url)), serving(three(pinecone.url))]);
  // From here on, writes become visible only by `settle`.
  await pinecone.lag({ held: true });
  const user_id = freshUser();
  const added = await one.client.tell('POST', '/memories', { user_id, content: 'the ferry leaves at nine' });
  const headers = { 'x-consistency-token': String(added.headers.get('x-consistency-token')) };
  const search = () => other.client.ask('/memories/search', { user_id, q: 'ferry' }, headers);
  const early = await search();
  expect([early.headers.get('x-consistency'), early.body]).toEqual(['behind', { results: [] }]);
  await pinecone.settle();
  const late = await search();
  expect(late.headers.get('x-consistency')).toBeNull();
  const { id } = added.body as WireMemory;
  expect(late.body).toMatchObject({ results: [{ memory: { id } }] });
});
