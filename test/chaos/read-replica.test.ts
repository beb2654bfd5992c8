import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { type Cluster, createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { type Fault, survive } from './survive.ts';

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

const WHILE_MS = 3_000;

test('a read replica that lags or is lost shows nobody less than they wrote, and fails no read', async () => {
  const primary = await createCluster({ trust: true });
  await primary.start();
  const replica = await createCluster({ trust: true, standbyOf: primary });
  await replica.start();
  const { base_url } = await startEmbedding();
  const { load, ledgers, gateway } = await startSubject({
    env: {
      DATABASE_URL: primary.url,
      OMP_POSTGRES_READ_URL: replica.url,
      OMP_AUDIT: 'writes',
      ...embeddedBy(base_url),
    },
    clients: 16,
    excuse: downOf('postgres', 'openai'),
  });
  const tell = async (text: string) => {
    const client = new pg.Client({ connectionString: replica.url });
    await client.connect();
    await client.query(text);
    await client.end();
  };
  const restarted = (name: string, server: Cluster, how: 'SIGQUIT' | 'SIGKILL'): Fault => ({
    name,
    async strike() {
      await server.stop(how);
      await load.during(WHILE_MS);
      await server.start();
    },
  });
  const faults: readonly Fault[] = [
    {
      name: 'read replica: stands still for 3 s, often',
      async strike() {
        for (let n = 0; n < 3; n++) {
          await tell('select pg_wal_replay_pause()');
          await load.during(WHILE_MS);
          await tell('select pg_wal_replay_resume()');
          await load.during(WHILE_MS / 3);
        }
      },
    },
    restarted('read replica: crashed, down for 3 s', replica, 'SIGQUIT'),
    restarted('read replica: killed (-9), down for 3 s', replica, 'SIGKILL'),
    restarted('its primary: crashed, down for 3 s', primary, 'SIGQUIT'),
  ];
  for (const fault of faults) await survive(load, fault);
  await load.pause();
  for (const ledger of ledgers) await ledger.searchOwn(5);
  expect((await gateway.stop()).status).toBe(0);
});
