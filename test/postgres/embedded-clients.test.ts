import { rm } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Engine, startEngine } from '../../providers/postgres/embedded/engine.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { randomName, until } from './store.ts';

let folder: string;
let engine: Engine;
beforeAll(async () => {
  folder = await makeDataDir();
  engine = await startEngine(folder, recordingLog());
});
afterAll(async () => {
  await engine.close();
  await rm(folder, { recursive: true, force: true });
});

/** A connection of its own; statements are sent without waiting for the last answer. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ ...engine.config, pipeline: true } as pg.ClientConfig);
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const connectMany = (count: number) => Promise.all(Array.from({ length: count }, connect));

/** What the clients answer when all ask at once, each so often. */
const askAll = (
  clients: readonly pg.Client[],
  times: number,
  ask: (client: pg.Client, who: string, i: number) => unknown,
) =>
  Promise.all(
    clients.flatMap((client, who) => Array.from({ length: times }, (_, i) => ask(client, `client ${who}`, i))),
  );

describe('clients of the embedded engine, which has one session for them all', () => {
  it.for(['named', 'nameless'])('get the answers to their own %s statements', async (kind) => {
    const name = kind === 'named' ? { name: randomName() } : {};
    const text = 'select $1::text as who, $2::int as i';
    const clients = await connectMany(6);
    await askAll(clients, 50, async (client, who, i) => {
      const { rows } = await client.query({ ...name, text, values: [who, i] });
      expect(rows).toEqual([{ who, i }]);
    });
  });

  it('may call different statements alike', async () => {
    const name = randomName();
    const [one, other] = (await connectMany(2)) as [pg.Client, pg.Client];
    for (let i = 0; i < 3; i++) {
      expect((await one.query({ name, text: 'select 1 as n' })).rows).toEqual([{ n: 1 }]);
      expect((await other.query({ name, text: 'select 2 as n' })).rows).toEqual([{ n: 2 }]);
    }
  });

  it('are not held up by the failures of others', async () => {
    const clients = await connectMany(4);
    await askAll(clients, 50, async (client, who, i) => {
      if (i % 3 === 0) await expect(client.query('select 1 / $1::int', [0])).rejects.toThrow('division by zero');
      else expect((await client.query('select $1::text as who', [who])).rows).toEqual([{ who }]);
    });
  });

  it('do not get between the statements of a transaction', async () => {
    const table = randomName();
    const clients = await connectMany(4);
    const onlooker = await connect();
    await onlooker.query(`create table ${table} (who text)`);
    await Promise.all(
      clients.map(async (client, who) => {
        for (let i = 0; i < 20; i++) {
          await client.query('begin');
          await client.query(`insert into ${table} values ($1)`, [who]);
          const { rows } = await client.query(`select count(*)::int as n from ${table} where who <> $1`, [who]);
          const again = await client.query(`select count(*)::int as n from ${table} where who <> $1`, [who]);
          expect(again.rows).toEqual(rows);
          await client.query(i % 2 === 0 ? 'commit' : 'rollback');
        }
      }),
    );
    const { rows } = await onlooker.query(`select who, count(*)::int as n from ${table} group by who order by who`);
    expect(rows).toEqual(clients.map((_, who) => ({ who: String(who), n: 10 })));
  });

  it('wait for a transaction, and see all of it or nothing', async () => {
    const table = randomName();
    const [writer, reader] = (await connectMany(2)) as [pg.Client, pg.Client];
    await writer.query(`create table ${table} (n int)`);
    await writer.query('begin');
    await writer.query(`insert into ${table} values (1)`);
    const order: string[] = [];
    const read = reader.query(`select n from ${table}`).then(({ rows }) => {
      order.push('read');
      return rows;
    });
    await writer.query(`insert into ${table} values (2)`);
    order.push('written');
    await writer.query('commit');
    expect(await read).toEqual([{ n: 1 }, { n: 2 }]);
    expect(order).toEqual(['written', 'read']);
  });

  it('that go away in the middle of a transaction leave nothing behind', async () => {
    const table = randomName();
    const [onlooker, leaving] = (await connectMany(2)) as [pg.Client, pg.Client];
    await onlooker.query(`create table ${table} (n int)`);
    const prepared = async () => (await onlooker.query('select name from pg_prepared_statements')).rows;
    await leaving.query('begin');
    await leaving.query({ name: 'left_behind', text: `insert into ${table} values ($1)`, values: [1] });
    // Waits for the transaction, and the one that is over.
    const found = onlooker.query(`select n from ${table}`);
    (leaving as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    expect((await found).rows).toEqual([]);
    await until(async () => (await prepared()).length === 0);
  });
});
