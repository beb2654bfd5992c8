import { rm } from 'node:fs/promises';
import type { Worker } from 'node:worker_threads';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startEngine } from '../../providers/postgres/embedded/engine.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { until } from './store.ts';

/** The threads that were started since: the way to end one as a crash would. */
const workers: Worker[] = [];
const notice = (worker: Worker) => void workers.push(worker);

let folder: string;
beforeEach(async () => {
  folder = await makeDataDir();
  workers.length = 0;
  process.on('worker', notice);
});
afterEach(async () => {
  process.off('worker', notice);
  await rm(folder, { recursive: true, force: true });
});

const ask = async (config: pg.ClientConfig, text: string) => {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};

describe('the embedded engine', () => {
  it('is reached without TLS, also where the environment asks a server for it', async () => {
    vi.stubEnv('PGSSLMODE', 'require');
    const engine = await startEngine(folder, recordingLog());
    try {
      expect(await ask(engine.config, 'select 1 as one')).toEqual([{ one: 1 }]);
    } finally {
      vi.unstubAllEnvs();
      await engine.close();
    }
  });

  it('comes back after it died, with everything acknowledged', async () => {
    const log = recordingLog();
    const engine = await startEngine(folder, log);
    await ask(engine.config, 'create table kept (n int); insert into kept values (7)');
    await workers[0]?.terminate();
    await until(() =>
      ask(engine.config, 'select n from kept')
        .then((rows) => rows[0]?.n === 7)
        .catch(() => false),
    );
    expect(workers).toHaveLength(2);
    expect(log.lines.map(({ message }) => message)).toEqual(['the embedded Postgres died; starting it again']);
    await engine.close();
    await expect(ask(engine.config, 'select 1')).rejects.toThrow();
  });

  it('closes also while it is dead, and gives the folder back', async () => {
    const engine = await startEngine(folder, recordingLog());
    await workers[0]?.terminate();
    await engine.close();
    const again = await startEngine(folder, recordingLog());
    expect(await ask(again.config, 'select 1 as n')).toEqual([{ n: 1 }]);
    await again.close();
  });

  it('holds its folder until it is closed', async () => {
    const engine = await startEngine(folder, recordingLog());
    await expect(startEngine(folder, recordingLog())).rejects.toThrow(/in use by another omp-gateway.*OMP_DATA_DIR/);
    await engine.close();
    await (await startEngine(folder, recordingLog())).close();
  });
});
