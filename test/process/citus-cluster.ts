import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { type Cluster, createCluster, POSTGRES_BIN } from './postgres-cluster.ts';

/** Whether Citus is installed beside these PostgreSQL binaries. */
export const HAS_CITUS =
  POSTGRES_BIN !== '' &&
  existsSync(
    join(`${execFileSync(join(POSTGRES_BIN, 'pg_config'), ['--sharedir'])}`.trim(), 'extension/citus.control'),
  );
export const NO_CITUS = 'there is no Citus beside the binaries of TEST_POSTGRES_BIN';

export interface Citus {
  /** Of the coordinator. */
  readonly url: string;
  readonly coordinator: Cluster;
  readonly workers: readonly Cluster[];
  /** Starts one more node, which holds nothing until the shards are rebalanced. */
  addWorker(): Promise<void>;
  sql(text: string): Promise<Record<string, unknown>[]>;
}

const SETTINGS = ['shared_preload_libraries=citus', 'wal_level=logical', 'max_connections=200'];

const run = async (connectionString: string, text: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};

/** A running coordinator and two workers; stopped after the test. */
export async function startCitus(): Promise<Citus> {
  const start = async (): Promise<Cluster> => {
    const node = await createCluster({ trust: true, settings: SETTINGS });
    onTestFinished(() => node.stop());
    await node.start();
    await run(node.url, 'create extension citus');
    await run(node.url, 'create extension vector');
    return node;
  };
  const coordinator = await start();
  const workers: Cluster[] = [];
  const sql = (text: string) => run(coordinator.url, text);
  const addWorker = async () => {
    const worker = await start();
    await sql(`select citus_add_node('127.0.0.1', ${new URL(worker.url).port})`);
    workers.push(worker);
  };
  await sql(`select citus_set_coordinator_host('127.0.0.1', ${new URL(coordinator.url).port})`);
  await addWorker();
  await addWorker();
  await sql(`alter database postgres set citus.shard_count = 8`);
  return { url: coordinator.url, coordinator, workers, addWorker, sql };
}
