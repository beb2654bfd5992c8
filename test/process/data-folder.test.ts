import { expect, test } from 'vitest';
import { freshUser } from '../support/subject.ts';
import { runProgram, startGateway, temporaryFolder } from './gateway.ts';

test('a second gateway on the same data folder is refused, while the first goes on', async () => {
  const folder = temporaryFolder();
  const env = { OMP_DATA_DIR: folder, OMP_SEARCH_MODE: 'keyword' };
  const first = await startGateway({ env });
  const second = await runProgram({ env });
  expect(second).toMatchObject({ status: 1, stdout: '' });
  expect(second.stderr).toContain(`the data folder ${folder} is in use by another omp-gateway`);
  expect(second.stderr).toContain('OMP_DATA_DIR');
  expect(second.stderr).not.toMatch(/^\s+at /m);
  const { id } = await first.client.add({ user_id: freshUser(), content: 'still here' });
  expect((await first.client.get(id)).content).toBe('still here');
});

test('the data folder of a killed gateway can be taken at once, and that of a stopped one too', async () => {
  const env = { OMP_DATA_DIR: temporaryFolder() };
  const killed = await startGateway({ env });
  const { id } = await killed.client.add({ user_id: freshUser(), content: 'kept' });
  expect((await killed.kill()).signal).toBe('SIGKILL');
  const stopped = await startGateway({ env });
  expect((await stopped.client.get(id)).content).toBe('kept');
  expect((await stopped.stop()).status).toBe(0);
  const { client } = await startGateway({ env });
  expect((await client.get(id)).content).toBe('kept');
});

test('memories added without vectors are not searched as if they had some', async () => {
  const env = { OMP_DATA_DIR: temporaryFolder() };
  const keyword = await startGateway({ env });
  const { id } = await keyword.client.add({ user_id: freshUser(), content: 'added without a vector' });
  await keyword.stop();
  const hybrid = await runProgram({ env: { ...env, OMP_SEARCH_MODE: 'hybrid' } });
  expect(hybrid.status).toBe(1);
  expect(hybrid.stderr).toMatch(/have no vector.*OMP_SEARCH_MODE=keyword.*omp-gateway reembed/s);
  expect(hybrid.stderr).not.toMatch(/^\s+at /m);
  // The refusal changed nothing.
  const again = await startGateway({ env });
  expect((await again.client.get(id)).content).toBe('added without a vector');
});
