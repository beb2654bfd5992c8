import { describe, expect, onTestFinished, test } from 'vitest';
import { type Answer, embeddings, embeddingsServer } from '../embedding/embeddings-server.ts';
import { serverSubject } from '../postgres/reembed-subject.ts';
import { until } from '../postgres/store.ts';
import type { Client } from '../support/client.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { freshUser } from '../support/subject.ts';
import { dataFolder, startGateway } from './gateway.ts';

/** An embedding service, and the environment of a gateway that uses it asynchronously. */
async function service() {
  const server = await embeddingsServer();
  onTestFinished(() => server.close());
  const env = {
    OMP_SEARCH_MODE: 'hybrid',
    OMP_INGESTION: 'async',
    OMP_EMBEDDER: 'openai',
    OMP_EMBEDDING_MODEL: 'test',
    OPENAI_BASE_URL: server.base_url,
  };
  /** Whether the vector of a memory was requested. */
  const asked = () => server.received.some(({ input }) => input.some((text) => text !== 'memory'));
  return { server, env, asked };
}

/** Never answers. */
const silent: Answer = () => {};

const addMany = (client: Client, user_id: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, i) => client.add({ user_id, content: `memory ${i}` })));

const allDone = async (client: Client, user_id: string) => {
  const { items } = await client.list({ user_id, limit: 500 });
  return items.every(({ status }) => status === 'done');
};

test('a gateway killed after its response keeps the memory and its place in the queue', async () => {
  const { server, env, asked } = await service();
  const data = { OMP_DATA_DIR: await dataFolder() };
  const first = await startGateway({ env: { ...env, ...data } });
  const user_id = freshUser();
  server.answer = silent;
  const added = await addMany(first.client, user_id, 20);
  expect(added.every(({ status }) => status === 'queued')).toBe(true);
  await until(async () => asked());
  await first.kill();

  server.answer = embeddings(8);
  const { client, stop } = await startGateway({ env: { ...env, ...data } });
  for (const { id, content } of added) expect(await client.get(id)).toMatchObject({ content });
  expect(await client.search({ user_id, q: 'memory' })).toHaveLength(10);
  await until(() => allDone(client, user_id));
  expect((await stop()).status).toBe(0);
});

test('a gateway stopped while it waits for vectors ends in order, and the next one computes them', async () => {
  const { server, env, asked } = await service();
  const data = { OMP_DATA_DIR: await dataFolder() };
  const first = await startGateway({ env: { ...env, ...data } });
  const user_id = freshUser();
  server.answer = silent;
  const [memory] = await addMany(first.client, user_id, 1);
  await until(async () => asked());
  expect((await first.client.get(memory?.id ?? '')).status).toBe('indexing');
  expect((await first.stop()).status).toBe(0);

  server.answer = embeddings(8);
  const second = await startGateway({ env: { ...env, ...data, OMP_INGESTION: 'sync' } });
  await until(() => allDone(second.client, user_id));
  expect((await second.stop()).status).toBe(0);
});

describe('on a PostgreSQL server', () => {
  test('gateways take over the queue of a killed one, and embed each other memory once', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const { server, env, asked } = await service();
    const { url, sql } = await serverSubject();
    const both = { ...env, DATABASE_URL: url };
    const first = await startGateway({ env: both });
    const user_id = freshUser();
    server.answer = silent;
    const begun = await addMany(first.client, user_id, 3);
    await until(async () => asked());
    await first.kill();

    server.answer = embeddings(8);
    server.received.length = 0;
    const [second, third] = await Promise.all([startGateway({ env: both }), startGateway({ env: both })]);
    const user = freshUser();
    const fresh = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        (i % 2 ? second : third).client.add({ user_id: user, content: `new ${i}` }),
      ),
    );
    await until(() => allDone(third.client, user));
    await until(() => allDone(second.client, user_id));
    const texts = server.received.flatMap(({ input }) => input).filter((text) => text !== 'memory');
    expect(texts.toSorted()).toEqual([...begun, ...fresh].map(({ content }) => content).toSorted());
    expect(await sql('select 1 from omp.memories where embedding is null')).toEqual([]);
    for (const { stop } of [second, third]) expect((await stop()).status).toBe(0);
  });
});
