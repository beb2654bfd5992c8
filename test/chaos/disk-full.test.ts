import { beforeEach, expect, test } from 'vitest';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN, serverUser } from '../process/postgres-cluster.ts';
import { copyEmptyPostgres } from '../support/empty-postgres.ts';
import { anyOf, brokenConnection, downOf } from '../support/ledger.ts';
import { mountSmallDisk, noSmallDisk } from '../support/small-disk.ts';
import { startSubject } from './subject.ts';
import { survive } from './survive.ts';

const NO_SMALL_DISK = noSmallDisk();

beforeEach(({ skip }) => skip(NO_SMALL_DISK !== '', NO_SMALL_DISK));

/** Failed requests before space is freed. */
const REFUSALS = 200;

test('on a full disk the embedded Postgres fails, loses nothing, and recovers once there is space', async () => {
  const disk = mountSmallDisk(160);
  await copyEmptyPostgres(disk.folder);
  const subject = await startSubject({
    env: { OMP_DATA_DIR: disk.folder, OMP_LOG_LEVEL: 'info' },
    clients: 12,
    excuse: anyOf(downOf('postgres'), brokenConnection),
  });
  const { load } = subject;
  await survive(load, {
    name: 'disk full: embedded Postgres',
    async strike() {
      disk.fill();
      await load.more('refused', REFUSALS);
      disk.free();
    },
  });
  await survive(load, {
    name: 'disk full: embedded Postgres, killed (-9) meanwhile',
    async strike() {
      disk.fill();
      await load.more('refused', REFUSALS);
      await subject.gateway.kill();
      disk.free();
      await subject.again();
    },
  });
  await load.pause();
  expect((await subject.gateway.stop()).status).toBe(0);
});

test('on a full disk a PostgreSQL server fails, loses nothing, and recovers once there is space', async ({ skip }) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const disk = mountSmallDisk(200, serverUser());
  const cluster = await createCluster({ folder: disk.folder });
  await cluster.start();
  const { load, gateway } = await startSubject({ env: { DATABASE_URL: cluster.url }, clients: 12 });
  await survive(load, {
    name: 'disk full: PostgreSQL server',
    async strike() {
      disk.fill();
      await load.more('refused', REFUSALS);
      disk.free();
      // A server that cannot write its WAL ends itself.
      if (cluster.processes().length === 0) await cluster.start();
    },
  });
  await load.pause();
  expect((await gateway.stop()).status).toBe(0);
});
