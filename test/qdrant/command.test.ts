import { expect, it, onTestFinished } from 'vitest';
import { runProgram, startGateway } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { freshUser } from '../support/subject.ts';
import { openQdrant } from './server.ts';

/** The three settings of the usual case, on a server of this test. */
async function settings(apiKey = 'a-key') {
  const { url, close } = await openQdrant({ apiKey });
  onTestFinished(close);
  return { OMP_PROVIDER: 'qdrant', QDRANT_URL: url, QDRANT_API_KEY: apiKey };
}

/** `startGateway` searches by keywords unless told otherwise. */
const VECTORS = { OMP_SEARCH_MODE: 'vector' };
const doctor = (env: Record<string, string>) => runProgram({ args: ['doctor'], env });

it('[SPEC Service capabilities] three settings put the gateway on Qdrant, where its memories stay', async () => {
  const env = await settings();
  expect((await doctor(env)).stdout).toMatch(/no collection yet: the first start creates it/);
  const user_id = freshUser();
  const first = await startGateway({ env: { ...env, ...VECTORS } });
  const { id } = await first.client.add({ user_id, content: 'I drink tea without sugar' });
  await first.stop();
  const { client } = await startGateway({ env: { ...env, ...VECTORS } });
  expect(await client.get(id)).toMatchObject({ content: 'I drink tea without sugar' });
  expect((await client.search({ user_id, q: 'what do I drink' })).map(({ memory }) => memory.id)).toEqual([id]);

  const healthy = await doctor(env);
  expect(healthy.status, healthy.stdout).toBe(0);
  expect(healthy.stdout).toMatch(/Qdrant 1\.\d+\.\d+ answers/);
  const wrong = await doctor({ ...env, QDRANT_API_KEY: 'another' });
  expect(wrong.status).toBe(1);
  expect(wrong.stdout).toMatch(/Qdrant rejected the key of the gateway/);
  const away = await doctor({ ...env, QDRANT_URL: `http://127.0.0.1:${await freePort()}` });
  expect(away.stdout).toMatch(/Qdrant cannot be reached/);
});
