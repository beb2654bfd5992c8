import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { downOf } from '../support/ledger.ts';
import { startTcpProxy, type Weather } from '../support/tcp-proxy.ts';
import { signalAll } from './processes.ts';
import { embeddedBy, startEmbedding, startSubject } from './subject.ts';
import { type Fault, survive } from './survive.ts';

beforeEach(({ skip }) => skip(POSTGRES_BIN === '', NO_POSTGRES_BIN));

/** Long enough for deadlines to pass and for the circuit breaker to try again several times. */
const WHILE_MS = 3_000;

test('faults of the PostgreSQL server and its network lose nothing acknowledged, and no response is wrong', async () => {
  const cluster = await createCluster();
  await cluster.start();
  const way = await startTcpProxy(cluster.url);
  const { base_url } = await startEmbedding();
  const { load, ledgers, gateway } = await startSubject({
    env: {
      DATABASE_URL: way.through(cluster.url),
      OMP_AUDIT: 'writes',
      ...embeddedBy(base_url),
    },
    clients: 16,
    // On a busy machine the deadline may pass before the vector arrives.
    excuse: downOf('postgres', 'openai'),
  });

  const paused = (name: string, ms: number): Fault => ({
    name,
    async strike() {
      const all = cluster.processes();
      signalAll(all, 'SIGSTOP');
      await sleep(ms);
      signalAll(all, 'SIGCONT');
    },
  });
  const restarted = (name: string, how: 'SIGINT' | 'SIGQUIT' | 'SIGKILL', downMs: number): Fault => ({
    name,
    async strike() {
      await cluster.stop(how);
      await sleep(downMs);
      await cluster.start();
    },
  });
  const weather = (name: string, bad: Weather): Fault => ({
    name,
    async strike() {
      way.become(bad);
      await load.during(WHILE_MS);
      way.become({});
    },
  });
  const faults: readonly Fault[] = [
    {
      name: 'PostgreSQL: all sessions killed (-9)',
      strike: async () => signalAll(cluster.processes().slice(1), 'SIGKILL'),
    },
    restarted('PostgreSQL: killed (-9) and started', 'SIGKILL', 0),
    restarted('PostgreSQL: crashed and started', 'SIGQUIT', 0),
    restarted('PostgreSQL: stopped, down for 5 s', 'SIGINT', 5_000),
    paused('PostgreSQL: paused for 1 s (SIGSTOP)', 1_000),
    paused('PostgreSQL: paused for 5 s (SIGSTOP)', 5_000),
    weather('network: 100 ms each way', { latency_ms: 100 }),
    weather('network: 20 kB/s', { bytes_per_second: 20_000 }),
    { name: 'network: all connections reset', strike: async () => way.reset() },
    weather('network: reset amid answers', { cut: { answers: 0.02 } }),
    weather('network: reset amid requests', { cut: { requests: 0.02 } }),
    weather('network: black hole', { black_hole: true }),
    {
      name: 'network: refused',
      async strike() {
        await way.down();
        await load.during(WHILE_MS);
        await way.up();
      },
    },
  ];
  for (const fault of faults) await survive(load, fault);
  await load.pause();
  for (const ledger of ledgers) await ledger.searchOwn(5);
  expect((await gateway.stop()).status).toBe(0);
});
