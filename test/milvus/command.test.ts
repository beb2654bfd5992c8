import { expect, it, onTestFinished } from 'vitest';
import { runProgram, startGateway } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { freshUser } from '../support/subject.ts';
import { NO_MILVUS, openMilvus } from './server.ts';

const VECTORS = { OMP_PROVIDER: 'milvus', OMP_SEARCH_MODE: 'vector' };
const doctor = (env: Record<string, string>) => runProgram({ args: ['doctor'], env });

it('[SPEC Service capabilities] one setting puts the gateway on Milvus, where its memories stay, and says when the server is away', async ({
  skip,
}) => {
  skip(NO_MILVUS !== '', NO_MILVUS);
  const { url, close, kill, start } = await openMilvus();
  onTestFinished(close);
  const env = { ...VECTORS, OMP_MILVUS_URL: url };
  expect((await doctor(env)).stdout).toMatch(/no collection yet: the first start creates it/);
  const user_id = freshUser();
  const first = await startGateway({ env });
  // More than a text of Milvus holds, with characters of four bytes across its parts.
  const content = `x${'😀'.repeat(200_000)} "tea" \\ \n`;
  const { id } = await first.client.add({ user_id, content });
  await first.stop();
  await kill();
  await start();
  const healthy = await doctor(env);
  expect(healthy.status, healthy.stdout).toBe(0);
  const { client } = await startGateway({ env });
  expect((await client.get(id))?.content).toBe(content);
  expect((await client.search({ user_id, q: 'tea' })).map(({ memory }) => memory.id)).toEqual([id]);

  const away = await doctor({ ...env, OMP_MILVUS_URL: `http://127.0.0.1:${await freePort()}` });
  expect(away.status).toBe(1);
  expect(away.stdout).toMatch(/Milvus cannot be reached/);
});
