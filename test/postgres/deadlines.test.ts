import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { statement } from '../../providers/postgres/connections.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { callThatGoes, openSessions, reasonOf } from './sessions.ts';
import { call, until } from './store.ts';
import { openWay } from './way.ts';

beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

const SLEEP = 'select pg_sleep(600)';
const NAMES = ['on', 'off'] as const;
const TOOK_TOO_LONG = { code: 'provider_error', provider: 'postgres', message: 'the database took too long' };
const BUSY = { code: 'provider_error', provider: 'postgres', message: 'all connections to the database are busy' };

describe('a statement that takes too long', () => {
  it.each(NAMES)('is told as such and cancelled, and the connection stays, names: %s', async (prepared_statements) => {
    const { run, running, pids } = await openSessions({ query_timeout_ms: 300, prepared_statements });
    await run('select 1');
    const before = await pids();
    const behind = [reasonOf(run(SLEEP)), run('select 2 as n')] as const;
    expect(await behind[0]).toMatchObject(TOOK_TOO_LONG);
    expect(await behind[1]).toEqual([{ n: 2 }]);
    expect(await running()).toEqual([]);
    expect(await pids()).toEqual(before);
  });

  it('[Decision 26] is rolled back as a whole with its settings', async () => {
    const { run, database, store } = await openSessions({ query_timeout_ms: 300 });
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const insert = `insert into ${store.names.memories} values (1)`;
    expect(await reasonOf(database.queryWith(insert, statement(SLEEP), [], call))).toMatchObject(TOOK_TOO_LONG);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });

  it('is counted from its own turn, not from that of those before it', async () => {
    const { run } = await openSessions({ query_timeout_ms: 1_000 });
    const answers = await Promise.all([1, 2, 3, 4].map((n) => run('select pg_sleep(0.4), $1::int as n', [n])));
    expect(answers.map(([row]) => row?.n)).toEqual([1, 2, 3, 4]);
  });

  it('takes its connection down when the server does not cancel it', async () => {
    const { seen, connectionString } = await openWay(SERVER_URL, { onCancel: async () => false });
    const { run, pids } = await openSessions({ url: connectionString, query_timeout_ms: 300 });
    await run('select 1');
    const before = await pids();
    const hung = reasonOf(run(SLEEP));
    const behind = reasonOf(run('select 2'));
    expect(await hung).toMatchObject(TOOK_TOO_LONG);
    expect(await behind).toMatchObject({ code: 'provider_error', message: 'the database closed the connection' });
    expect(seen.cancels).toBe(1);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    const now = await pids();
    expect(now).not.toEqual(before);
  });

  it('is not asked to be cancelled of a server that cannot', async () => {
    const { seen, connectionString } = await openWay(SERVER_URL);
    const options = { url: connectionString, query_timeout_ms: 300, cancellable: false };
    const { run } = await openSessions(options);
    expect(await reasonOf(run('select pg_sleep(1)'))).toMatchObject(TOOK_TOO_LONG);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    expect(seen.cancels).toBe(0);
  });
});

describe('a statement whose turn does not come in time', () => {
  it.each(NAMES)('is answered that all are busy, names: %s', async (prepared_statements) => {
    const { run } = await openSessions({ acquire_timeout_ms: 200, prepared_statements });
    const first = run('select pg_sleep(1), 1 as n');
    expect(await reasonOf(run('select 2'))).toMatchObject(BUSY);
    expect(await first).toMatchObject([{ n: 1 }]);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
  });

  it('[Decision 26] does not act, or is cancelled when its turn has come', async () => {
    const { run, running, store } = await openSessions({ acquire_timeout_ms: 200 });
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const first = run('select pg_sleep(1), 1 as n');
    const late = reasonOf(run(`insert into ${store.names.memories} select 1 from pg_sleep(600)`));
    expect(await late).toMatchObject(BUSY);
    expect(await first).toMatchObject([{ n: 1 }]);
    await until(async () => (await running()).length === 0);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });

  it('is taken over by another connection that has nothing to do', async () => {
    const { run } = await openSessions({ connections: 2, prepared_statements: 'off' });
    const { call: going, go } = callThatGoes();
    const long = reasonOf(run(SLEEP, [], going));
    const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => run('select pg_sleep(0.02), $1::int as n', [n])));
    expect(answers.map(([row]) => row?.n)).toEqual([1, 2, 3, 4, 5]);
    go();
    await long;
  });

  it('because no connection opens is answered that the database cannot be reached', async () => {
    // Takes connections and says nothing.
    const mute = createServer();
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const { port } = mute.address() as AddressInfo;
    const { run, database } = await openSessions({
      config: { host: '127.0.0.1', port, user: 'u', database: 'd', ssl: false, connectionTimeoutMillis: 2_000 },
      acquire_timeout_ms: 200,
    });
    expect(await reasonOf(run('select 1'))).toMatchObject({
      code: 'provider_error',
      message: 'the database cannot be reached',
    });
    await database.close();
    mute.close();
  });
});
