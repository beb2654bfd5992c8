import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openConnections, statement } from '../../providers/postgres/client/connections.ts';
import { startEngine } from '../../providers/postgres/embedded/engine.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { call, until } from './store.ts';

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
  // Without a listener, a lost connection would end the process.
  client.on('error', () => {});
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
    expect(log.lines.map(({ message }) => message)).toEqual(['the embedded Postgres died; restarting it']);
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

  it('closes also while it runs a long statement, if that is interrupted', async () => {
    const engine = await startEngine(folder, recordingLog());
    const files = () => readdirSync(join(folder, 'postgres/base'), { recursive: true }).length;
    const before = files();
    const endless = expect(
      ask(
        engine.config,
        'create table begun (n int); select count(*) from generate_series(1, 99999) a, generate_series(1, 99999) b',
      ),
    ).rejects.toThrow();
    // The file of the table appears while the statement runs.
    while (files() === before) await sleep(10);
    engine.disableRestart();
    const closed = engine.close();
    engine.interrupt();
    await closed;
    await endless;
  });

  it('holds its folder until it is closed', async () => {
    const engine = await startEngine(folder, recordingLog());
    await expect(startEngine(folder, recordingLog())).rejects.toThrow(/in use by another omp-gateway.*OMP_DATA_DIR/);
    await engine.close();
    await (await startEngine(folder, recordingLog())).close();
  });

  it('ends a statement that nobody waits for any more, and answers everybody else', async () => {
    const log = recordingLog();
    const engine = await startEngine(folder, log);
    await ask(engine.config, 'create table kept (n int primary key)');
    const db = openConnections({
      config: engine.config,
      connections: 1,
      prepared_statements: 'auto',
      acquire_timeout_ms: 600_000,
      query_timeout_ms: 600_000,
      cancellable: false,
      engine,
    });
    const insert = statement('small', 'insert into kept values ($1::int)');
    /** Written before, and while the engine is busy for ever. */
    const kept: number[] = [];
    const add = async (n: number) => {
      await db.query(insert, [n], call);
      kept.push(n);
    };
    for (let n = 0; n < 50; n++) await add(n);
    for (let round = 1; round <= 2; round++) {
      const gone = new AbortController();
      const endless = db.query(
        statement(
          'small',
          'select count(*) from generate_series(1, 99999) a, generate_series(1, 99999) b, generate_series(1, 99999) c',
        ),
        [],
        callOf(gone.signal),
      );
      endless.catch(() => {});
      // So long that what is asked now is not sent behind it.
      await sleep(200);
      const others = Array.from({ length: 20 }, (_, i) => add(round * 100 + i));
      gone.abort(new Error('gone'));
      await expect(endless).rejects.toThrow();
      await Promise.all(others);
    }
    const rows = await ask(engine.config, 'select n from kept order by n');
    expect(rows.map(({ n }) => n)).toEqual(kept.sort((a, b) => a - b));
    expect(kept).toHaveLength(90);
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'warn']);
    await db.close();
    await engine.close();
  });

  it('interrupted amid writes, has all that it acknowledged', async () => {
    const engine = await startEngine(folder, recordingLog());
    await ask(engine.config, 'create table kept (n int primary key)');
    const acknowledged: number[] = [];
    let n = 0;
    for (let round = 0; round < 3; round++) {
      await engine.ready();
      const client = new pg.Client(engine.config);
      client.on('error', () => {});
      await client.connect();
      const write = async (): Promise<never> => {
        for (;;) {
          const mine = n++;
          await client.query(`insert into kept values (${mine})`);
          acknowledged.push(mine);
          if (acknowledged.length % 100 === 0) engine.interrupt();
        }
      };
      await expect(write()).rejects.toThrow();
    }
    await engine.ready();
    const there = new Set((await ask(engine.config, 'select n from kept')).map((row) => row.n));
    expect(acknowledged.length).toBeGreaterThanOrEqual(300);
    expect(acknowledged.filter((each) => !there.has(each))).toEqual([]);
    await engine.close();
  });
});
