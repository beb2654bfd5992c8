import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { findingsOn, told } from '../postgres/databases.ts';
import { HAS_CITUS, NO_CITUS, startCitus } from '../process/citus-cluster.ts';
import type { Cluster } from '../process/postgres-cluster.ts';
import { downOf } from '../support/ledger.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { type Fault, survive } from './survive.ts';

beforeEach(({ skip }) => skip(!HAS_CITUS, NO_CITUS));

test('lost nodes of Citus and moved shards lose nothing acknowledged, and no response is wrong', async () => {
  const citus = await startCitus();
  const { base_url } = await startEmbedding();
  const { load, ledgers, gateway } = await startSubject({
    env: {
      DATABASE_URL: citus.url,
      OMP_POSTGRES_DISTRIBUTED: 'citus',
      OMP_AUDIT: 'writes',
      ...embeddedBy(base_url),
    },
    clients: 16,
    excuse: downOf('postgres', 'openai'),
  });

  const restarted = (
    name: string,
    node: Cluster,
    how: 'SIGINT' | 'SIGQUIT' | 'SIGKILL',
    meanwhile: () => Promise<unknown> = async () => {},
  ): Fault => ({
    name,
    async strike() {
      await node.stop(how);
      await meanwhile();
      await node.start();
    },
  });
  const doctorMisses = async ({ url }: Cluster) =>
    expect(told(await findingsOn(citus.url), 'problem')).toEqual([
      `connection: the node ${new URL(url).host} of Citus cannot be reached: requests of its users fail`,
    ]);
  const [first, second] = citus.workers as [Cluster, Cluster];
  const onNewNode = async () => {
    const port = new URL((citus.workers[2] as Cluster).url).port;
    const rows = await citus.sql(`select 1 from citus_shards where nodeport = ${port}`);
    return rows.length;
  };
  const faults: readonly Fault[] = [
    restarted('Citus: a worker killed (-9) and started', first, 'SIGKILL'),
    restarted('Citus: a worker crashed, down for 3 s', second, 'SIGQUIT', () =>
      Promise.all([sleep(3_000), doctorMisses(second)]),
    ),
    restarted('Citus: a worker stopped, down for 5 s', first, 'SIGINT', () => sleep(5_000)),
    restarted('Citus: the coordinator killed (-9) and started', citus.coordinator, 'SIGKILL'),
    {
      name: 'Citus: a node added, shards rebalanced',
      async strike() {
        await citus.addWorker();
        await citus.sql('select citus_rebalance_start()');
        await citus.sql('select citus_rebalance_wait()');
        expect(await onNewNode()).toBeGreaterThan(0);
      },
    },
    {
      name: 'Citus: a node emptied and removed',
      async strike() {
        const port = new URL(first.url).port;
        await citus.sql(`select citus_drain_node('127.0.0.1', ${port})`);
        await citus.sql(`select citus_remove_node('127.0.0.1', ${port})`);
        await first.stop();
      },
    },
  ];
  for (const fault of faults) await survive(load, fault);
  await load.pause();
  for (const ledger of ledgers) await ledger.searchOwn(5);
  expect((await gateway.stop()).status).toBe(0);
});
