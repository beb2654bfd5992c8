import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { openLedger } from '../support/ledger.ts';
import { startLoad } from '../support/load.ts';
import { startGateway } from './gateway.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from './postgres-cluster.ts';

const CLIENTS = 24;
/** Operations that succeed between two faults. */
const BETWEEN = 100;
const PAUSE_MS = 1_000;

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

test('connections killed, the server stopped, crashed and paused under load: nothing acknowledged is lost, no answer is wrong', async () => {
  const cluster = await createCluster();
  await cluster.start();
  const gateway = await startGateway({ env: { DATABASE_URL: cluster.url, OMP_AUDIT: 'writes' } });
  const ledgers = Array.from({ length: CLIENTS }, () => openLedger(gateway.client));
  const load = startLoad(ledgers);
  const figures: string[] = [];

  const onServer = async <Result>(use: (client: pg.Client) => Promise<Result>): Promise<Result> => {
    const client = new pg.Client({ connectionString: cluster.url });
    await client.connect();
    const result = await use(client);
    await client.end();
    return result;
  };
  const OTHERS = `from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  const faults: Record<string, () => Promise<void>> = {
    'connections killed': () =>
      onServer(async (client) => void (await client.query(`select pg_terminate_backend(pid) ${OTHERS}`))),
    'stopped and started': async () => {
      await cluster.stop();
      await load.more('failed', CLIENTS);
      await cluster.start();
    },
    'crashed and started': async () => {
      await cluster.stop('SIGQUIT');
      await cluster.start();
    },
    'sessions paused': () =>
      onServer(async (client) => {
        const { rows } = await client.query<{ pid: number }>(`select pid ${OTHERS}`);
        for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
        await sleep(PAUSE_MS);
        for (const { pid } of rows) process.kill(pid, 'SIGCONT');
      }),
  };

  for (const [name, fault] of Object.entries(faults)) {
    await load.more('succeeded', BETWEEN);
    const failed = load.count.failed;
    await fault();
    const back = performance.now();
    await load.more('succeeded', 1);
    const first = performance.now() - back;
    await load.more('succeeded', CLIENTS);
    const ms = (value: number) => `${value.toFixed(0)} ms`;
    figures.push(
      `${name}: first success after ${ms(first)}, ${CLIENTS} after ${ms(performance.now() - back)}, ${load.count.failed - failed} failed`,
    );
  }
  await load.more('succeeded', BETWEEN);
  await load.pause();
  let kept = 0;
  for (const ledger of ledgers) kept += await ledger.check();
  console.log(
    [...figures, `${load.count.succeeded} succeeded, ${load.count.failed} failed, ${kept} memories kept`].join('\n'),
  );
  expect(kept).toBeGreaterThan(0);
  expect((await gateway.stop()).status).toBe(0);
});
