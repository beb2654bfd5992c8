import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { statement } from '../../providers/postgres/client/connections.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { callThatGoes, closedGate, holdDeadlines, openSessions, reasonOf } from './sessions.ts';
import { call, until } from './store.ts';
import { openWay } from './way.ts';

beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

const SLEEP = 'select pg_sleep(600)';
const NAMES = ['on', 'off'] as const;
const TOOK_TOO_LONG = { code: 'provider_error', provider: 'postgres', message: 'the database took too long' };
/** Lets time pass, again and again, until the work is done. */
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
/** Time passes, and what nobody waits for any more is cancelled. */
const nothingRuns = (pass: (ms: number) => void, running: () => Promise<readonly string[]>) =>
  until(async () => {
    pass(25);
    return (await running()).length === 0;
  });
const BUSY = { code: 'provider_error', provider: 'postgres', message: 'all connections to the database are busy' };

describe('a statement that takes too long', () => {
  it.each(NAMES)('is told as such and cancelled, and the connection stays, names: %s', async (prepared_statements) => {
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
    const asked = reasonOf(database.queryWith(insert, statement(SLEEP), [], call));
    await until(async () => (await running()).includes(SLEEP));
    pass(400);
    expect(await asked).toMatchObject(TOOK_TOO_LONG);
    await nothingRuns(pass, running);
    expect(await run(`select n from ${store.names.memories}`)).toEqual([]);
  });

  it('is counted from its own turn, not from that of those before it', async () => {
    const { run, running } = await openSessions({ query_timeout_ms: 1_000 });
    const { pass } = holdDeadlines();
    const gates = [await closedGate(), await closedGate(), await closedGate()];
    const texts = gates.map(({ wait }, n) => `select ${wait}, ${n} as n`);
    const answers = texts.map((text) => run(text));
    for (const [n, gate] of gates.entries()) {
      await until(async () => (await running()).includes(texts[n] as string));
      // Together longer than one may take.
      pass(600);
      await gate.open();
      expect((await answers[n])?.[0]?.n).toBe(n);
    }
  });

  it('takes its connection down when the server does not cancel it', async () => {
    const { seen, connectionString } = await openWay(SERVER_URL, { onCancel: async () => false });
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
    // A server that is asked to cancel is waited for.
    const told = passUntil(pass, behind);
    expect(await told).toMatchObject({ code: 'provider_error', message: 'the database closed the connection' });
    expect(seen.cancels).toBe(1);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
    const now = await pids();
    expect(now).not.toEqual(before);
  });

  it('is not asked to be cancelled of a server that cannot', async () => {
    const { seen, connectionString } = await openWay(SERVER_URL);
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

describe('a statement whose turn does not come in time', () => {
  it.each(NAMES)('is answered that all are busy, names: %s', async (prepared_statements) => {
    const { run } = await openSessions({ acquire_timeout_ms: 200, prepared_statements });
    const { pass } = holdDeadlines();
    const gate = await closedGate();
    // The connection is open.
    await run('select 0');
    const first = run(`select ${gate.wait}, 1 as n`);
    const late = reasonOf(run('select 2'));
    pass(300);
    expect(await late).toMatchObject(BUSY);
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    expect(await run('select 3 as n')).toEqual([{ n: 3 }]);
  });

  it('[Decision 26] does not act, or is cancelled when its turn has come', async () => {
    const { run, running, store } = await openSessions({ acquire_timeout_ms: 200 });
    const { pass } = holdDeadlines();
    const gate = await closedGate();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    await run('select 0');
    const first = run(`select ${gate.wait}, 1 as n`);
    const late = reasonOf(run(`insert into ${store.names.memories} select 1 from pg_sleep(600)`));
    pass(300);
    expect(await late).toMatchObject(BUSY);
    await gate.open();
    expect(await first).toMatchObject([{ n: 1 }]);
    await nothingRuns(pass, running);
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
