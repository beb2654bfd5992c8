import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { statement } from '../../providers/postgres/client/connections.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { NO_PGBOUNCER, startPgBouncer } from '../process/pgbouncer.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import {
  abortableCall,
  abortableRequest,
  closedGate,
  holdDeadlines,
  openProxy,
  openSessions,
  reasonOf,
  type Sessions,
} from './sessions.ts';
import { call, until } from './store.ts';

// The embedded engine has one thread, which receives no cancel request while a statement runs.
beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

const SLEEP = 'select pg_sleep(600)';
const NAMES = ['on', 'off'] as const;

describe('a statement whose call is aborted', () => {
  it.each(NAMES)('is cancelled on the server, and the connection stays, names: %s', async (prepared_statements) => {
    const { run, running, pids } = await openSessions({ prepared_statements });
    await run('select 1');
    const before = await pids();
    const { call: aborting, reason, abort } = abortableCall();
    const asked = reasonOf(run(SLEEP, [], aborting));
    const behind = run('select 2 as n');
    await until(async () => (await running()).includes(SLEEP));
    abort();
    expect(await asked).toBe(reason);
    // Rejected at once, although the server still works on it.
    expect(await running()).toEqual([SLEEP]);
    expect(await behind).toEqual([{ n: 2 }]);
    expect(await running()).toEqual([]);
    expect(await pids()).toEqual(before);
  });

  it.each(NAMES)(
    'is also cancelled when the request rejects the call itself, names: %s',
    async (prepared_statements) => {
      const { run, running } = await openSessions({ prepared_statements });
      const { call: aborting, reason, abort } = abortableRequest();
      const asked = reasonOf(run(SLEEP, [], aborting));
      await until(async () => (await running()).includes(SLEEP));
      abort();
      expect(await asked).toBe(reason);
      expect(await run('select 2 as n')).toEqual([{ n: 2 }]);
    },
  );

  it('is not cancelled while others run before it', async () => {
    const { run, running } = await openSessions();
    const gate = await closedGate();
    const first = run(`select ${gate.wait}, 1 as n`);
    const { call: aborting, reason, abort } = abortableCall();
    const asked = reasonOf(run(SLEEP, [], aborting));
    await until(async () => (await running()).length > 0);
    abort();
    // Rejected at once, although it has not started.
    expect(await asked).toBe(reason);
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    expect(await running()).toEqual([]);
  });

  it('does not fail statements that rely on its preparation', async () => {
    const { run, store, running, pids } = await openSessions();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} as select 1 as n`);
    await run('select 1');
    const before = await pids();
    // Preparing a statement waits for the lock on its table.
    const { store: locker } = await openSessions();
    await locker.sql(`begin; lock table ${store.names.memories} in access exclusive mode`);
    const text = `select n from ${store.names.memories}`;
    const { call: aborting, reason, abort } = abortableCall();
    const asked = reasonOf(run(text, [], aborting));
    const behind = [1, 2, 3].map(() => run(text));
    await until(async () => (await running()).includes(text));
    abort();
    expect(await asked).toBe(reason);
    // It is cancelled, and the others use another connection.
    await until(async () => (await pids()).some((pid) => !before.includes(pid)));
    await locker.sql('commit');
    expect(await Promise.all(behind)).toEqual([[{ n: 1 }], [{ n: 1 }], [{ n: 1 }]]);
  });

  it('is not sent when it is aborted in the queue', async () => {
    const { run, store, running } = await openSessions({ prepared_statements: 'off' });
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const gate = await closedGate();
    const first = run(`select ${gate.wait}, 1 as n`);
    const { call: aborting, reason, abort } = abortableRequest();
    const asked = reasonOf(run(`insert into ${store.names.memories} values (1)`, [], aborting));
    await until(async () => (await running()).length > 0);
    abort();
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    expect(await asked).toBe(reason);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });
});

describe('a transaction whose call is aborted', () => {
  it('is rolled back as a whole, and the connection stays', async () => {
    const { run, database, store, running, pids } = await openSessions();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    await run('select 1');
    const before = await pids();
    const insert = `insert into ${store.names.memories} values (1)`;
    const { call: aborting, reason, abort } = abortableCall();
    const asked = reasonOf(database.query(statement('small', SLEEP), [], aborting, insert));
    await until(async () => (await running()).includes(SLEEP));
    abort();
    expect(await asked).toBe(reason);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
    expect(await run('select pg_current_xact_id_if_assigned() as id')).toEqual([{ id: null }]);
    expect(await pids()).toEqual(before);
  });

  it('has its connection for itself, so a cancel request hits the transaction or nothing', async () => {
    const { seen, connectionString } = await openProxy(SERVER_URL);
    const { run, database } = await openSessions({ url: connectionString });
    const inside = database.query(statement('small', 'select pg_sleep(0.1), 1 as n'), [], call, 'select 1');
    const behind = run('select 2 as n');
    expect(await inside).toMatchObject([{ n: 1 }]);
    expect(await behind).toEqual([{ n: 2 }]);
    expect(seen.most).toBe(1);
  });
});

describe('a cancel request that arrives too late', () => {
  it('hits another statement, which is sent again and answered', async () => {
    const arrival = gate();
    const { seen, connectionString } = await openProxy(SERVER_URL, { onCancel: () => arrival.opened });
    const { run, running, store, pids } = await openSessions({ url: connectionString });
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    await run('select 1');
    const before = await pids();
    // Ends by itself while its cancel request is in flight.
    const { call: aborting, reason, abort } = abortableCall();
    const [one, other] = [await closedGate(), await closedGate()];
    const asked = reasonOf(run(`select ${one.wait}`, [], aborting));
    await until(async () => (await running()).length > 0);
    const text = `insert into ${store.names.memories} select 7 from ${other.wait} returning n`;
    const neighbour = run(text);
    const second = run('select 8 as n');
    abort();
    expect(await asked).toBe(reason);
    await until(async () => seen.cancels === 1);
    await one.open();
    await until(async () => (await running()).includes(text));
    arrival.open();
    // It was sent again and waits once more.
    await other.open();
    expect(await neighbour).toEqual([{ n: 7 }]);
    expect(await second).toEqual([{ n: 8 }]);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([{ n: 7 }]);
    // A late signal to the old session hits nothing.
    await until(async () => !(await pids()).some((pid) => before.includes(pid)));
  });

  it('is not assumed: a cancellation by an operator is an error', async () => {
    const { run, running, store, pids } = await openSessions();
    const asked = reasonOf(run(SLEEP));
    await until(async () => (await running()).includes(SLEEP));
    await store.sql('select pg_cancel_backend($1)', await pids());
    expect(await asked).toMatchObject({ code: 'provider_error', message: 'the database took too long' });
  });
});

/** Wrong outcomes of many calls, of which some are aborted. */
async function crowd({ run, database }: Sessions, callers: number): Promise<unknown[]> {
  const outcomes = await Promise.all(
    Array.from({ length: callers }, async (_, i) => {
      const { call: aborting, reason, abort } = i % 2 ? abortableCall() : abortableRequest();
      // Every tenth would sleep forever, every third is aborted at some time.
      const aborts = i % 10 === 0 || i % 3 === 0;
      const text = 'select pg_sleep($1::float8), $2::int as n';
      const values = [i % 10 === 0 ? 600 : Math.random() * 0.02, i];
      const answer =
        i % 7 === 0
          ? database.query(statement('small', text), values, aborting, `set local work_mem = '8MB'`)
          : run(text, values, aborting);
      if (aborts) setTimeout(abort, Math.random() * 400);
      const outcome = await answer.then(
        ([row]) => row?.n,
        (reason: unknown) => reason,
      );
      return outcome === i || (aborts && outcome === reason) ? undefined : outcome;
    }),
  );
  return outcomes.filter((wrong) => wrong !== undefined);
}

describe('many calls of which some are aborted', () => {
  it.each(NAMES)('leave nothing running, and the others are answered, names: %s', async (prepared_statements) => {
    const sessions = await openSessions({ connections: 4, prepared_statements });
    expect(await crowd(sessions, 200)).toEqual([]);
    await until(async () => (await sessions.running()).length === 0);
    expect(await sessions.run('select 1 as n')).toEqual([{ n: 1 }]);
  });

  it('the same through PgBouncer in transaction mode', async ({ skip }) => {
    skip(NO_PGBOUNCER !== '', NO_PGBOUNCER);
    const url = await startPgBouncer(SERVER_URL);
    const sessions = await openSessions({ url, connections: 2, prepared_statements: 'auto' });
    expect(await crowd(sessions, 60)).toEqual([]);
    await until(async () => (await sessions.running()).length === 0);
    expect(await sessions.run('select 1 as n')).toEqual([{ n: 1 }]);
  });
});

it('a cancel request is encrypted where the session is', async ({ skip }) => {
  skip(POSTGRES_BIN === '', NO_POSTGRES_BIN);
  const cluster = await createCluster({ tls: true });
  await cluster.start();
  const { seen, connectionString } = await openProxy(cluster.url);
  const { run } = await openSessions({
    config: { connectionString, ssl: { rejectUnauthorized: false } },
    query_timeout_ms: 1_000,
  });
  expect(await reasonOf(run(SLEEP))).toMatchObject({ message: 'the database took too long' });
  expect(await run('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).toEqual([{ ssl: true }]);
  // One by the session, one by the cancel request.
  expect(seen).toMatchObject({ tlsRequests: 2, cancels: 0 });
});

const TOOK_TOO_LONG = { code: 'provider_error', provider: 'postgres', message: 'the database took too long' };
/** Lets time pass repeatedly until the work is done. */
async function passUntil<Result>(pass: (ms: number) => void, work: Promise<Result>): Promise<Result> {
  let done = false;
  const settled = work.finally(() => {
    done = true;
  });
  await until(async () => {
    pass(100);
    return done;
  });
  return settled;
}
/** Lets time pass until abandoned statements are cancelled. */
const nothingRuns = (pass: (ms: number) => void, running: () => Promise<readonly string[]>) =>
  until(async () => {
    pass(25);
    return (await running()).length === 0;
  });
/** Not sent. */
const BUSY = {
  code: 'rate_limited',
  provider: 'postgres',
  message: 'all connections to the database are busy; retry in 1 s',
  retryAfter: 1,
};
/** Sent behind other statements. */
const STUCK = {
  code: 'provider_error',
  provider: 'postgres',
  message: 'the database is busy with earlier statements; this one may still run',
  retryAfter: undefined,
};

describe('a statement that takes too long', () => {
  it.each(NAMES)('is rejected and cancelled, and the connection stays, names: %s', async (prepared_statements) => {
    const { run, running, pids } = await openSessions({ query_timeout_ms: 300, prepared_statements });
    const { pass } = holdDeadlines();
    await run('select 1');
    const before = await pids();
    const behind = [reasonOf(run(SLEEP)), run('select 2 as n')] as const;
    await until(async () => (await running()).includes(SLEEP));
    pass(400);
    expect(await behind[0]).toMatchObject(TOOK_TOO_LONG);
    expect(await behind[1]).toEqual([{ n: 2 }]);
    expect(await running()).toEqual([]);
    expect(await pids()).toEqual(before);
  });

  it('[Decision 26] is rolled back as a whole with its settings', async () => {
    const { run, running, database, store } = await openSessions({ query_timeout_ms: 300 });
    const { pass } = holdDeadlines();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const insert = `insert into ${store.names.memories} values (1)`;
    const asked = reasonOf(database.query(statement('small', SLEEP), [], call, insert));
    await until(async () => (await running()).includes(SLEEP));
    pass(400);
    expect(await asked).toMatchObject(TOOK_TOO_LONG);
    await nothingRuns(pass, running);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });

  it('is timed from its own start, not from that of statements before it', async () => {
    const { run, running } = await openSessions({ query_timeout_ms: 1_000 });
    const { pass } = holdDeadlines();
    const gates = [await closedGate(), await closedGate(), await closedGate()];
    const texts = gates.map(({ wait }, n) => `select ${wait}, ${n} as n`);
    const answers = texts.map((text) => run(text));
    for (const [n, gate] of gates.entries()) {
      await until(async () => (await running()).includes(texts[n] as string));
      // Together longer than the limit of one.
      pass(600);
      await gate.open();
      expect((await answers[n])?.[0]?.n).toBe(n);
    }
  });

  it('closes its connection if the server does not cancel it', async () => {
    const { seen, connectionString } = await openProxy(SERVER_URL, { onCancel: async () => false });
    const { run, running, pids } = await openSessions({ url: connectionString, query_timeout_ms: 300 });
    const { pass } = holdDeadlines();
    await run('select 1');
    const before = await pids();
    const hung = reasonOf(run(SLEEP));
    const behind = reasonOf(run('select 2'));
    await until(async () => (await running()).includes(SLEEP));
    pass(400);
    expect(await hung).toMatchObject(TOOK_TOO_LONG);
    await until(async () => seen.cancels === 1);
    // The connection waits for the answer to the cancel request.
    const told = passUntil(pass, behind);
    expect(await told).toMatchObject({ code: 'provider_error', message: 'the database closed the connection' });
    expect(seen.cancels).toBe(1);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    const now = await pids();
    expect(now).not.toEqual(before);
  });

  it('sends no cancel request to a server that does not support it', async () => {
    const { seen, connectionString } = await openProxy(SERVER_URL);
    const options = { url: connectionString, query_timeout_ms: 300, cancellable: false };
    const { run, running } = await openSessions(options);
    const { pass } = holdDeadlines();
    const gate = await closedGate();
    const text = `select ${gate.wait}`;
    const asked = reasonOf(run(text));
    await until(async () => (await running()).includes(text));
    pass(400);
    expect(await asked).toMatchObject(TOOK_TOO_LONG);
    await gate.open();
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    expect(seen.cancels).toBe(0);
  });
});

describe('a statement that exceeds its time in the queue', () => {
  it.each([
    ['on', STUCK],
    ['off', BUSY],
  ] as const)(
    '[Decision 29] is rejected, which tells whether it was sent, names: %s',
    async (prepared_statements, rejection) => {
      const { run } = await openSessions({ acquire_timeout_ms: 200, prepared_statements });
      const { pass } = holdDeadlines();
      const gate = await closedGate();
      // The connection is open.
      await run('select 0');
      const first = run(`select ${gate.wait}, 1 as n`);
      const late = reasonOf(run('select 2'));
      pass(300);
      expect(await late).toMatchObject(rejection);
      await gate.open();
      expect(await first).toMatchObject([{ n: 1 }]);
      expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    },
  );

  it('[Decision 26] has no effect: it is cancelled when it starts', async () => {
    const { run, running, store } = await openSessions({ acquire_timeout_ms: 200 });
    const { pass } = holdDeadlines();
    const gate = await closedGate();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    await run('select 0');
    const first = run(`select ${gate.wait}, 1 as n`);
    const insert = `insert into ${store.names.memories} select 1 from pg_sleep(600)`;
    const late = reasonOf(run(insert));
    pass(300);
    expect(await late).toMatchObject(STUCK);
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    await until(async () => (await running()).includes(insert));
    await nothingRuns(pass, running);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });

  it('is taken over by an idle connection', async () => {
    const { run } = await openSessions({ connections: 2, prepared_statements: 'off' });
    const { call: aborting, abort } = abortableCall();
    const long = reasonOf(run(SLEEP, [], aborting));
    const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => run('select pg_sleep(0.02), $1::int as n', [n])));
    expect(answers.map(([row]) => row?.n)).toEqual([1, 2, 3, 4, 5]);
    abort();
    await long;
  });

  it('is rejected as unreachable if no connection opens', async () => {
    // Accepts connections and never answers.
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
