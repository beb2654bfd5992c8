import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, runProgram, startGateway, startProgram } from './gateway.ts';
import { answering, DATABASES, isRunning, patientClient, workersOf } from './workers.ts';

const CLIENTS = 16;
/** Operations that succeed between two faults. */
const BETWEEN = 60;

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
};
const ended = (pids: readonly number[]) => until(() => !pids.some(isRunning));
/** How often a worker was found to have ended. */
const replaced = ({ printed }: RunningGateway) => printed().match(/a worker ended; starting another one/g)?.length ?? 0;

const ledgersOf = (gateway: RunningGateway) => {
  const client = patientClient(gateway);
  return Array.from({ length: CLIENTS }, () => openLedger(client));
};

describe.for(Object.entries(DATABASES))('several workers on one database (%s)', ([, { missing, make }]) => {
  test('[Decision 32] share the port and the memories', async ({ skip }) => {
    skip(missing !== '', missing);
    const gateway = await startGateway({ env: { ...(await make()), OMP_WORKERS: '3' } });
    const { client, printed } = gateway;
    expect(workersOf(gateway)).toHaveLength(3);
    const user_id = freshUser();
    const added = await Promise.all(
      Array.from({ length: 60 }, (_, i) => client.add({ user_id, content: `memory ${i}` })),
    );
    const found = await Promise.all(added.map(({ id }) => client.get(id)));
    expect(found).toEqual(added);
    expect(answering(gateway)).toEqual([1, 2, 3]);
    expect(printed().match(/listens on/g)).toHaveLength(1);
    expect(await gateway.stop()).toMatchObject({ status: 0, signal: null, stderr: '' });
  });

  test('[Decision 32] a worker that is killed under load is replaced, and nothing acknowledged is lost', async ({
    skip,
  }) => {
    skip(missing !== '', missing);
    const gateway = await startGateway({ env: { ...(await make()), OMP_WORKERS: '2' } });
    const ledgers = ledgersOf(gateway);
    const load = startLoad(ledgers);
    for (let kills = 1; kills <= 3; kills++) {
      await load.more('succeeded', BETWEEN);
      process.kill(workersOf(gateway)[kills % 2] as number, 'SIGKILL');
      while (replaced(gateway) < kills || workersOf(gateway).length < 2) await load.more('succeeded', 1);
    }
    await load.more('succeeded', BETWEEN);
    await load.pause();
    let kept = 0;
    for (const ledger of ledgers) kept += await ledger.check();
    console.log(`${load.count.succeeded} succeeded, ${load.count.failed} failed, ${kept} memories kept`);
    expect(await gateway.stop()).toMatchObject({ status: 0, stderr: '' });
  });

  test('all workers killed at once come back on the same port', async ({ skip }) => {
    skip(missing !== '', missing);
    const gateway = await startGateway({ env: { ...(await make()), OMP_WORKERS: '2' } });
    const { id } = await gateway.client.add({ user_id: freshUser(), content: 'kept' });
    // What is asked at that moment must be answered too, or its connection closed.
    for (const pid of workersOf(gateway)) process.kill(pid, 'SIGKILL');
    const client = patientClient(gateway);
    while ((await client.raw(`/memories/${id}`)).status !== 200) await new Promise((next) => setTimeout(next, 20));
    expect(await gateway.stop()).toMatchObject({ status: 0, stderr: '' });
  });

  test('when the primary process is killed the workers end, and all is free for the next', async ({ skip }) => {
    skip(missing !== '', missing);
    const env = { ...(await make()), OMP_WORKERS: '2' };
    const gateway = await startGateway({ env });
    const ledgers = ledgersOf(gateway);
    const load = startLoad(ledgers);
    await load.more('succeeded', BETWEEN);
    const workers = workersOf(gateway);
    await gateway.kill();
    await ended(workers);
    await load.more('failed', 1);
    const again = await startGateway({ env: { ...env, OMP_PORT: new URL(gateway.url).port } });
    await load.more('succeeded', BETWEEN);
    await load.pause();
    for (const ledger of ledgers) await ledger.check();
    expect(await again.stop()).toMatchObject({ status: 0, stderr: '' });
  });

  test.for(['SIGTERM to the primary process', 'SIGINT to all, as a terminal does'])(
    'stop in good order under load: %s',
    async (how, { skip }) => {
      skip(missing !== '', missing);
      const env = { ...(await make()), OMP_WORKERS: '2', OMP_SHUTDOWN_DELAY_MS: '100' };
      const gateway = await startGateway({ env });
      const ledgers = ledgersOf(gateway);
      const load = startLoad(ledgers);
      await load.more('succeeded', BETWEEN);
      const workers = workersOf(gateway);
      if (how.startsWith('SIGTERM')) gateway.child.kill('SIGTERM');
      else for (const pid of [...workers, gateway.child.pid as number]) process.kill(pid, 'SIGINT');
      const { status, stderr, stdout } = await gateway.ended;
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).not.toMatch(/"level":50/);
      expect(workers.filter(isRunning)).toEqual([]);
      await load.pause();
      const again = await startGateway({ env: { ...env, OMP_PORT: new URL(gateway.url).port } });
      for (const ledger of ledgers) await ledger.check();
      await again.stop();
    },
  );
});

test('the port for metrics counts for all workers, and is ready while one of them is', async () => {
  const env = { ...(await DATABASES.embedded?.make()), OMP_WORKERS: '2', OMP_SHUTDOWN_DELAY_MS: '3600000' };
  const gateway = await startGateway({ env: { ...env, OMP_METRICS_PORT: '0' } });
  const [, port] = await gateway.output(/"port":(\d+),"msg":"the port for metrics is open"/);
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  const user_id = freshUser();
  await Promise.all(Array.from({ length: 40 }, () => gateway.client.list({ user_id })));
  expect(answering(gateway)).toEqual([1, 2]);
  const counted = async () =>
    /^omp_http_request_duration_seconds_count\{method="GET",route="\/memories",status="200"\} (\d+)$/m.exec(
      await (await ask('/metrics')).text(),
    )?.[1];
  // A request is counted when its answer has left.
  while ((await counted()) !== '40') await new Promise((next) => setTimeout(next, 20));
  process.kill(workersOf(gateway)[0] as number, 'SIGKILL');
  expect((await ask('/readyz')).status).toBe(200);
  expect((await ask('/healthz')).status).toBe(200);
  gateway.child.kill('SIGTERM');
  await gateway.output(/"msg":"stopping"/);
  const draining = await ask('/readyz');
  expect({ status: draining.status, body: await draining.json() }).toEqual({
    status: 503,
    body: { status: 'draining' },
  });
});

test('[Decision 32] a second signal ends all processes at once', async () => {
  const env = { ...(await DATABASES.embedded?.make()), OMP_WORKERS: '2', OMP_SHUTDOWN_DELAY_MS: '3600000' };
  const gateway = await startGateway({ env });
  const workers = workersOf(gateway);
  gateway.child.kill('SIGTERM');
  await gateway.output(/"msg":"stopping"/);
  // They go on serving, and say so.
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
  gateway.child.kill('SIGTERM');
  expect(await gateway.ended).toMatchObject({ status: null, signal: 'SIGTERM' });
  await ended(workers);
});

test('a signal while they start ends them in good order', async () => {
  const program = startProgram({
    env: { ...(await DATABASES.embedded?.make()), OMP_WORKERS: '2', OMP_SEARCH_MODE: 'keyword' },
  });
  await until(() => workersOf(program).length === 2);
  const workers = workersOf(program);
  program.child.kill('SIGTERM');
  expect(await program.ended).toMatchObject({ status: 0, stderr: '' });
  expect(workers.filter(isRunning)).toEqual([]);
});

describe('workers that cannot start end the gateway with the reason', () => {
  const refused = async (env: Record<string, string>) => {
    const { status, stdout, stderr } = await runProgram({
      env: { OMP_SEARCH_MODE: 'keyword', OMP_WORKERS: '2', ...env },
    });
    expect(status).toBe(1);
    expect(stdout).not.toMatch(/listens on|another one/);
    expect(stderr).not.toMatch(/^\s+at /m);
    return stderr;
  };

  test('nobody listens where the database should be', async () => {
    const stderr = await refused({ DATABASE_URL: 'postgres://omp@127.0.0.1:1/omp' });
    expect(stderr).toMatch(/^omp-gateway: cannot connect to the database.*DATABASE_URL/);
    expect(stderr.match(/omp-gateway:/g)).toHaveLength(1);
  });

  test('somebody else has the port', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await until(() => other.listening);
    const { port } = other.address() as { port: number };
    expect(await refused({ ...(await DATABASES.embedded?.make()), OMP_PORT: String(port) })).toMatch(
      /port \d+ is in use by another program; set OMP_PORT/,
    );
  });

  test('another gateway has the data folder, and goes on', async () => {
    const env = { ...(await DATABASES.embedded?.make()), OMP_WORKERS: '2' };
    const first = await startGateway({ env });
    expect(await refused(env)).toMatch(/the data folder .* is in use by another omp-gateway.*OMP_DATA_DIR/);
    const { id } = await first.client.add({ user_id: freshUser(), content: 'still here' });
    expect((await first.client.get(id)).content).toBe('still here');
  });
});

test('[Decision 32] memories of a process, or known to one alone, are not spread over workers', async () => {
  for (const [provider, way] of [
    ['memory', 'memories of its own'],
    ['pinecone', 'X-Consistency-Token'],
  ]) {
    const env = {
      OMP_PROVIDER: provider as string,
      PINECONE_API_KEY: 'test',
      PINECONE_INDEX_HOST: 'http://127.0.0.1:1',
    };
    const { status, stderr } = await runProgram({ env: { ...env, OMP_WORKERS: '2' } });
    expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining(way as string) });
    expect(stderr).toContain('workers (OMP_WORKERS) must be 1');
  }
});
