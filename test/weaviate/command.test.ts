import { expect, it, onTestFinished } from 'vitest';
import { runProgram, startGateway } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { freshUser } from '../support/subject.ts';
import { NO_WEAVIATE, openWeaviate } from './server.ts';

const VECTORS = { OMP_PROVIDER: 'weaviate', OMP_SEARCH_MODE: 'vector' };
const doctor = (env: Record<string, string>) => runProgram({ args: ['doctor'], env });

it('[SPEC Service capabilities] two settings put the gateway on Weaviate, where its memories stay, and wrong ones say what helps', async ({
  skip,
}) => {
  skip(NO_WEAVIATE !== '', NO_WEAVIATE);
  const keys = { AUTHENTICATION_APIKEY_ENABLED: 'true', AUTHENTICATION_APIKEY_ALLOWED_KEYS: 'a-key' };
  const users = { AUTHENTICATION_APIKEY_USERS: 'gateway', AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED: 'false' };
  const { url, grpc_url, close, kill, start } = await openWeaviate({ ...keys, ...users });
  onTestFinished(close);
  const env = { ...VECTORS, OMP_WEAVIATE_URL: url, OMP_WEAVIATE_GRPC_URL: grpc_url, OMP_WEAVIATE_API_KEY: 'a-key' };
  expect((await doctor(env)).stdout).toMatch(/no collection yet: the first start creates it/);
  const user_id = freshUser();
  const first = await startGateway({ env });
  const content = `${'😀'.repeat(200_000)} "tea" \\ \n`;
  const { id } = await first.client.add({ user_id, content });
  await first.stop();
  await kill();
  await start();
  const healthy = await doctor(env);
  expect(healthy.status, healthy.stdout).toBe(0);
  expect(healthy.stdout).toMatch(/Weaviate 1\.\d+\.\d+ answers/);
  const { client } = await startGateway({ env });
  expect((await client.get(id))?.content).toBe(content);
  expect((await client.search({ user_id, q: 'tea' })).map(({ memory }) => memory.id)).toEqual([id]);

  const nowhere = `http://127.0.0.1:${await freePort()}`;
  for (const [wrong, message] of [
    [{ OMP_WEAVIATE_API_KEY: 'another' }, /Weaviate rejected the key/],
    [{ OMP_WEAVIATE_GRPC_URL: nowhere }, /Weaviate cannot be reached by gRPC/],
    [{ OMP_WEAVIATE_URL: nowhere }, /Weaviate cannot be reached/],
    // The port of the one interface, for the other.
    [{ OMP_WEAVIATE_GRPC_URL: url }, /Weaviate cannot be reached by gRPC/],
  ] as const) {
    const { status, stdout } = await doctor({ ...env, ...wrong });
    expect(status, stdout).toBe(1);
    expect(stdout).toMatch(message);
  }
});
