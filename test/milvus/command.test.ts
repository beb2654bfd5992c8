import { expect, it, onTestFinished } from 'vitest';
import { runProgram, startGateway } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { freshUser } from '../support/subject.ts';
import { freshCollection, NO_MILVUS, openMilvus } from './server.ts';

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

it('[Decision 43] memories move to Milvus and back with their ids and times', async ({ skip }) => {
  skip(NO_MILVUS !== '', NO_MILVUS);
  const { url, close } = await openMilvus();
  onTestFinished(close);
  const env = { ...VECTORS, OMP_MILVUS_URL: url, OMP_MILVUS_COLLECTION: freshCollection() };
  const [source, target] = [
    await startGateway({ env: { ...VECTORS, OMP_PROVIDER: 'memory' } }),
    await startGateway({ env: { ...VECTORS, OMP_PROVIDER: 'memory' } }),
  ];
  for (const user_id of ['ana', 'ben']) {
    const memories = Array.from({ length: 60 }, (_, n) => ({
      ...{ user_id, content: `note ${n}`, tags: n % 2 ? ['odd'] : [], scope: n % 3 ? 'a/b' : null, 'x-n': { n } },
    }));
    expect(await source.client.tell('POST', '/memories/batch', { memories })).toMatchObject({ status: 200 });
  }
  const move = async (...args: readonly string[]) => {
    const { status, stdout, stderr } = await runProgram({ args, env });
    expect(status, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
    return stdout;
  };
  await move('migrate', '--from', source.url, '--to', 'config');
  expect(await move('verify', source.url, 'config')).toContain('No memory differs.');
  await move('migrate', '--from', 'config', '--to', target.url);
  expect(await move('verify', source.url, target.url)).toContain('No memory differs.');
});
