import { beforeEach, describe, expect, it } from 'vitest';
import { statement } from '../../providers/postgres/client/connections.ts';
import { NO_PGBOUNCER, startPgBouncer } from '../process/pgbouncer.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { callThatGoes, closedGate, openSessions, reasonOf, requestThatGoes, type Sessions } from './sessions.ts';
import { call, until } from './store.ts';
import { openWay } from './way.ts';

// The embedded engine has one thread, which no request reaches while a statement runs.
beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

const SLEEP = 'select pg_sleep(600)';
const NAMES = ['on', 'off'] as const;

describe('a statement whose caller goes', () => {
  it.each(NAMES)('is cancelled on the server, and the connection stays, names: %s', async (prepared_statements) => {
    const { run, running, pids } = await openSessions({ prepared_statements });
    await run('select 1');
    const before = await pids();
    const { call: going, gone, go } = callThatGoes();
    const asked = reasonOf(run(SLEEP, [], going));
    const behind = run('select 2 as n');
    await until(async () => (await running()).includes(SLEEP));
    go();
    expect(await asked).toBe(gone);
    // Told at once, though the server still works on it.
    expect(await running()).toEqual([SLEEP]);
    expect(await behind).toEqual([{ n: 2 }]);
    expect(await running()).toEqual([]);
    expect(await pids()).toEqual(before);
  });

  it.each(NAMES)(
    'is cancelled also when its request tells the caller itself, names: %s',
    async (prepared_statements) => {
      const { run, running } = await openSessions({ prepared_statements });
      const { call: going, gone, go } = requestThatGoes();
      const asked = reasonOf(run(SLEEP, [], going));
      await until(async () => (await running()).includes(SLEEP));
      go();
      expect(await asked).toBe(gone);
      expect(await run('select 2 as n')).toEqual([{ n: 2 }]);
    },
  );

  it('is not cancelled while others are before it', async () => {
    const { run, running } = await openSessions();
    const gate = await closedGate();
    const first = run(`select ${gate.wait}, 1 as n`);
    const { call: going, gone, go } = callThatGoes();
    const asked = reasonOf(run(SLEEP, [], going));
    await until(async () => (await running()).length > 0);
    go();
    // Told at once, though it is not its turn.
    expect(await asked).toBe(gone);
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    expect(await running()).toEqual([]);
  });

  it('does not trouble those that would have used what it prepares', async () => {
    const { run, store, running, pids } = await openSessions();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} as select 1 as n`);
    await run('select 1');
    const before = await pids();
    // Preparing a statement waits for the lock of its table.
    const { store: locker } = await openSessions();
    await locker.sql(`begin; lock table ${store.names.memories} in access exclusive mode`);
    const text = `select n from ${store.names.memories}`;
    const { call: going, gone, go } = callThatGoes();
    const asked = reasonOf(run(text, [], going));
    const behind = [1, 2, 3].map(() => run(text));
    await until(async () => (await running()).includes(text));
    go();
    expect(await asked).toBe(gone);
    // Cancelled, and the others have gone elsewhere.
    await until(async () => (await pids()).some((pid) => !before.includes(pid)));
    await locker.sql('commit');
    expect(await Promise.all(behind)).toEqual([[{ n: 1 }], [{ n: 1 }], [{ n: 1 }]]);
  });

  it('is not sent when it went before its turn', async () => {
    const { run, store, running } = await openSessions({ prepared_statements: 'off' });
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const gate = await closedGate();
    const first = run(`select ${gate.wait}, 1 as n`);
    const { call: going, gone, go } = requestThatGoes();
    const asked = reasonOf(run(`insert into ${store.names.memories} values (1)`, [], going));
    await until(async () => (await running()).length > 0);
    go();
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    expect(await asked).toBe(gone);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });
});

describe('a transaction whose caller goes', () => {
  it('is rolled back as a whole, and the connection stays', async () => {
    const { run, database, store, running, pids } = await openSessions();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    await run('select 1');
    const before = await pids();
    const insert = `insert into ${store.names.memories} values (1)`;
    const { call: going, gone, go } = callThatGoes();
    const asked = reasonOf(database.queryWith(insert, statement(SLEEP), [], going));
    await until(async () => (await running()).includes(SLEEP));
    go();
    expect(await asked).toBe(gone);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
    expect(await run('select pg_current_xact_id_if_assigned() as id')).toEqual([{ id: null }]);
    expect(await pids()).toEqual(before);
  });

  it('has the connection to itself: what is cancelled there is the transaction or nothing', async () => {
    const { seen, connectionString } = await openWay(SERVER_URL);
    const { run, database } = await openSessions({ url: connectionString });
    const inside = database.queryWith('select 1', statement('select pg_sleep(0.1), 1 as n'), [], call);
    const behind = run('select 2 as n');
    expect(await inside).toMatchObject([{ n: 1 }]);
    expect(await behind).toEqual([{ n: 2 }]);
    expect(seen.most).toBe(1);
  });
});

describe('a cancel request that comes too late', () => {
  it('hits a neighbour, which is sent again and answered', async () => {
    let arrive = () => {};
    const held = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const { seen, connectionString } = await openWay(SERVER_URL, { onCancel: () => held });
    const { run, running, store, pids } = await openSessions({ url: connectionString });
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    await run('select 1');
    const before = await pids();
    // Ends by itself, while its cancel request is under way.
    const { call: going, gone, go } = callThatGoes();
    const [one, other] = [await closedGate(), await closedGate()];
    const asked = reasonOf(run(`select ${one.wait}`, [], going));
    await until(async () => (await running()).length > 0);
    const text = `insert into ${store.names.memories} select 7 from ${other.wait} returning n`;
    const neighbour = run(text);
    const second = run('select 8 as n');
    go();
    expect(await asked).toBe(gone);
    await until(async () => seen.cancels === 1);
    await one.open();
    await until(async () => (await running()).includes(text));
    arrive();
    // Sent again, it has to wait once more.
    await other.open();
    expect(await neighbour).toEqual([{ n: 7 }]);
    expect(await second).toEqual([{ n: 8 }]);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([{ n: 7 }]);
    // Whatever else is on its way to the old session hits nobody.
    await until(async () => !(await pids()).some((pid) => before.includes(pid)));
  });

  it('is not counted upon: who cancels from outside is told to the caller', async () => {
    const { run, running, store, pids } = await openSessions();
    const asked = reasonOf(run(SLEEP));
    await until(async () => (await running()).includes(SLEEP));
    await store.sql('select pg_cancel_backend($1)', await pids());
    expect(await asked).toMatchObject({ code: 'provider_error', message: 'the database took too long' });
  });
});

/** Those that are answered wrongly of many callers, of whom some go. */
async function crowd({ run, database }: Sessions, callers: number): Promise<unknown[]> {
  const outcomes = await Promise.all(
    Array.from({ length: callers }, async (_, i) => {
      const { call: going, gone, go } = i % 2 ? callThatGoes() : requestThatGoes();
      // Every tenth would sleep for ever, every third goes at some time.
      const goes = i % 10 === 0 || i % 3 === 0;
      const text = 'select pg_sleep($1::float8), $2::int as n';
      const values = [i % 10 === 0 ? 600 : Math.random() * 0.02, i];
      const answer =
        i % 7 === 0
          ? database.queryWith(`set local work_mem = '8MB'`, statement(text), values, going)
          : run(text, values, going);
      if (goes) setTimeout(go, Math.random() * 400);
      const outcome = await answer.then(
        ([row]) => row?.n,
        (reason: unknown) => reason,
      );
      return outcome === i || (goes && outcome === gone) ? undefined : outcome;
    }),
  );
  return outcomes.filter((wrong) => wrong !== undefined);
}

describe('many callers of whom some go', () => {
  it.each(NAMES)('leave nothing running, and the others are answered, names: %s', async (prepared_statements) => {
    const sessions = await openSessions({ connections: 4, prepared_statements });
    expect(await crowd(sessions, 200)).toEqual([]);
    await until(async () => (await sessions.running()).length === 0);
    expect(await sessions.run('select 1 as n')).toEqual([{ n: 1 }]);
  });

  it('do so through PgBouncer in transaction mode', async ({ skip }) => {
    skip(NO_PGBOUNCER !== '', NO_PGBOUNCER);
    const url = await startPgBouncer(SERVER_URL);
    const sessions = await openSessions({ url, connections: 2, prepared_statements: 'auto' });
    expect(await crowd(sessions, 60)).toEqual([]);
    await until(async () => (await sessions.running()).length === 0);
    expect(await sessions.run('select 1 as n')).toEqual([{ n: 1 }]);
  });
});

describe('a cancel request', () => {
  it('is encrypted where the session is', async ({ skip }) => {
    skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
    const cluster = await createCluster({ tls: true });
    await cluster.start();
    const { seen, connectionString } = await openWay(cluster.url);
    const { run } = await openSessions({
      config: { connectionString, ssl: { rejectUnauthorized: false } },
      query_timeout_ms: 1_000,
    });
    expect(await reasonOf(run(SLEEP))).toMatchObject({ message: 'the database took too long' });
    expect(await run('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).toEqual([{ ssl: true }]);
    // The session's and the request's own.
    expect(seen).toMatchObject({ tlsRequests: 2, cancels: 0 });
  });
});
