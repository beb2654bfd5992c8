import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Call, OmpError } from '#contract';
import {
  type ConnectionOptions,
  type Database,
  openConnections,
  rememberStatements,
  statement,
} from '../../providers/postgres/client/connections.ts';
import { createFairQueue, createHeavyLimit } from '../../providers/postgres/client/fair-queue.ts';
import { createTask, type Task } from '../../providers/postgres/client/task.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { closedGate, holdDeadlines, openProxy } from './sessions.ts';
import { call, failure, memoryOf, randomName, refTo, storeForEach, until } from './store.ts';

const store = storeForEach();
// The embedded engine has one session for all clients, which keeps prepared statements of earlier tests.
beforeEach(() => store.sql('deallocate all'));

const connect = (options: Partial<ConnectionOptions> = {}): Database => {
  const database = openConnections({
    config: { connectionString: store.url },
    connections: 1,
    prepared_statements: 'auto',
    acquire_timeout_ms: 60_000,
    query_timeout_ms: 60_000,
    ...options,
  });
  onTestFinished(() => database.close());
  return database;
};
const run = (database: Database, text: string, values: readonly unknown[] = []) =>
  database.query(statement('small', text), values, call);
const by = (id: string, signal?: AbortSignal): Call => new Call('test', { id, app: id }, signal);
/** Statements that run and begin so. */
const active = (text: string) =>
  store.sql(`select pid from pg_stat_activity where state = 'active' and query like $1`, [`select ${text}%`]);
/** Names of the statements that this connection has prepared, itself included if it was sent by name. */
const prepared = async (database: Database): Promise<string[]> =>
  (await run(database, 'select name from pg_prepared_statements order by name')).map(({ name }) => name as string);

describe('a burst of statements', () => {
  it('answers each with its own rows, in any mix', async () => {
    const database = connect({ connections: 2 });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        i % 3 === 0
          ? database.query(statement('small', 'select $1::int as n, 0 as k'), [i], call, 'select 1')
          : run(database, `select $1::int as n, ${i % 7} as k`, [i]),
      ),
    );
    expect(answers.map((rows) => rows.map(({ n }) => n))).toEqual(Array.from({ length: 200 }, (_, i) => [i]));
  });

  it.each([
    ['light ones', 'light', 1],
    ['others', 'small', 2],
  ] as const)('sends %s of one turn on so many connections', async (_, weight, connections) => {
    const database = connect({ connections: 2 });
    const ask = statement(weight, 'select pg_backend_pid() as pid');
    const send = () => Promise.all(Array.from({ length: 6 }, () => database.query(ask, [], call)));
    await until(async () => (await send()) && database.stats().connections.open === 2);
    const pids = (await send()).map(([row]) => row?.pid);
    // The embedded engine has one session.
    expect(new Set(pids).size).toBe(SERVER_URL === '' ? 1 : connections);
  });

  it.each(['auto', 'on', 'off'] as const)('is not affected by statements that fail, names: %s', async (names) => {
    const database = connect({ prepared_statements: names });
    const texts = [
      'select 1 / $1::int as n', // fails while it runs
      'select no_such_column, $1::int as n', // fails while it is parsed
      'select $1::int as n from (select 1) as t where $1::text = any(array[1, 2]::int[]::text[])',
    ];
    const asked = Array.from({ length: 90 }, (_, i) => ({ text: texts[i % 3] as string, value: i % 4 }));
    const settled = await Promise.allSettled(asked.map(({ text, value }) => run(database, text, [value])));
    settled.forEach((result, i) => {
      const { text, value } = asked[i] as (typeof asked)[0];
      const fails = text === texts[1] || (text === texts[0] && value === 0);
      expect(result.status, `${text} with ${value}`).toBe(fails ? 'rejected' : 'fulfilled');
      if (result.status === 'rejected')
        expect(result.reason).toMatchObject({ code: 'provider_error', provider: 'postgres' });
    });
    // A value of the wrong type fails alone, too.
    const mixed = await Promise.allSettled([
      run(database, 'select $1::int as n', [1]),
      run(database, 'select $1::int as n', ['x']),
      run(database, 'select $1::int as n', [3]),
    ]);
    expect(mixed.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });
});

describe('[Decision 29] callers take turns', () => {
  const search = statement('heavy', 'select $1::int as n');
  it.each([
    ['searches', search, 10],
    ['other statements', statement('small', 'select $1::int as n'), 100],
  ] as const)('%s of one caller do not all run before those of another', async (_, asked, many) => {
    const database = connect();
    const answered: string[] = [];
    const ask = async (id: string) => {
      await database.query(asked, [1], by(id));
      answered.push(id);
    };
    await Promise.all([...Array.from({ length: many }, () => ask('one')), ask('other'), ask('other')]);
    expect(answered).toHaveLength(many + 2);
    expect(answered.indexOf('other')).toBeLessThan(many / 2);
  });

  it('more searches are in flight only while they are quick', async () => {
    const database = connect();
    const { pass } = holdDeadlines();
    pass(1);
    /** How many searches of one caller are answered before the first of another, which came last. */
    const ahead = async () => {
      const answered: string[] = [];
      const ask = async (id: string) => {
        await database.query(search, [1], by(id));
        answered.push(id);
      };
      await Promise.all([...Array.from({ length: 10 }, () => ask('one')), ask('other')]);
      return answered.indexOf('other');
    };
    const atFirst = await ahead();
    const quick = await ahead();
    const late = database.query(search, [1], by('one'));
    pass(100);
    await late;
    const slow = await ahead();
    expect([atFirst, quick, slow]).toEqual([2, 5, 3]);
  });

  it('queued searches end at their deadline or when their call is aborted', async () => {
    const database = connect({ acquire_timeout_ms: 1_000 });
    await run(database, 'select 1');
    const { pass } = holdDeadlines();
    const controller = new AbortController();
    const gone = new OmpError('invalid_request', 'gone');
    const slow = statement('heavy', 'select pg_sleep(0.5) as n');
    const running = [1, 2].map(() => database.query(slow, [], by('one')));
    const late = failure(database.query(search, [1], by('one')));
    const left = failure(database.query(search, [1], by('one', controller.signal)));
    controller.abort(gone);
    expect(await left).toBe(gone);
    pass(1_100);
    expect(await late).toMatchObject({ code: 'rate_limited', retryAfter: 1 });
    await Promise.allSettled(running);
    await until(async () => database.stats().connections.busy === 0);
    expect(await database.query(search, [7], by('one'))).toEqual([{ n: 7 }]);
    expect(database.stats().queue_length).toBe(0);
  });

  it('with two connections, other statements do not wait for searches', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const database = connect({ connections: 2 });
    const controller = new AbortController();
    const endless = statement('heavy', 'select pg_sleep(3600)');
    const searches = Array.from({ length: 16 }, () =>
      failure(database.query(endless, [], by('one', controller.signal))),
    );
    for (let n = 0; n < 100; n++) {
      expect(await database.query(statement('small', 'select $1::int as n'), [n], by('other'))).toEqual([{ n }]);
    }
    controller.abort(new OmpError('invalid_request', 'gone'));
    await Promise.all(searches);
  });
});

describe('[Decision 29] slow heavy statements of one caller', () => {
  it('leave a connection to the heavy ones of others, and one to the rest', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const database = connect({ connections: 4 });
    const gate = await closedGate();
    const slow = statement('heavy', `select ${gate.wait}, pg_backend_pid() as pid`);
    const walks = Array.from({ length: 8 }, () => database.query(slow, [], by('one')));
    await until(async () => (await active(gate.wait)).length === 2);
    for (let n = 0; n < 20; n++) {
      expect(await database.query(statement('heavy', 'select $1::int as n'), [n], by('other'))).toEqual([{ n }]);
      expect(await database.query(statement('small', 'select $1::int as m'), [n], by('other'))).toEqual([{ m: n }]);
    }
    expect(await active(gate.wait)).toHaveLength(2);
    await gate.open();
    expect(await Promise.all(walks)).toHaveLength(8);
  });

  it('hold up nothing that came while every connection was busy', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    const database = connect({ connections: 3 });
    const [gate, short] = [await closedGate(), await closedGate()];
    const walk = database.query(statement('heavy', `select ${gate.wait}`), [], by('one'));
    const others = [1, 2].map(() => database.query(statement('light', `select ${short.wait}`), [], by('others')));
    await until(async () => (await active(gate.wait)).length === 1 && (await active(short.wait)).length === 2);
    // Both run too long to be waited for, as the walk does: what comes goes to the one with the fewest.
    await sleep(150);
    const after = Array.from({ length: 200 }, (_, n) =>
      database.query(statement(n % 9 ? 'light' : 'heavy', 'select 1'), [], by(`${n}`)),
    );
    await Promise.all([short.open(), ...others, ...after]);
    expect(await active(gate.wait), 'nothing waited for it').toHaveLength(1);
    await Promise.all([gate.open(), walk]);
  });

  it('start although those of others are quick and many', () => {
    const started: string[] = [];
    const queue = createFairQueue(createHeavyLimit(2), 60_000, ({ call: { caller } }) => void started.push(caller.id));
    const tasks = new Map<string, Task[]>();
    const add = (id: string) => {
      const task = createTask({
        ...{ statement: statement('heavy', 'select 1'), values: [], settings: undefined },
        ...{ counts: { pending: 0, bytes: 0 }, resolve() {}, reject() {} },
        call: new Call('test', { id, app: id }),
      });
      tasks.set(id, [...(tasks.get(id) ?? []), task]);
      queue.enqueue(task);
    };
    /** The oldest of the caller ends after so many milliseconds. */
    const end = (id: string, ms: number) => {
      const task = tasks.get(id)?.shift() as Task;
      task.startedAt = performance.now() - ms;
      queue.ended(task);
    };
    for (let n = 0; n < 40; n++) {
      add('quick');
      end('quick', 1);
    }
    for (let n = 0; n < 10; n++) add('quick');
    started.length = 0;
    add('slow');
    add('quick');
    // Its turn comes after one of them; then it waits until a whole connection is free, and so do those behind it.
    for (let n = 0; n < 4; n++) end('quick', 1);
    expect(started).toEqual(['quick']);
    end('quick', 1);
    expect(started).toEqual(['quick', 'slow']);
  });
});

describe('a statement with settings', () => {
  it('has them, and no other statement of its connection has them', async () => {
    const database = connect();
    const shown = statement('small', `select current_setting('statement_timeout') as setting`);
    const usual = (await database.query(shown, [], call))[0]?.setting;
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        i % 2 === 0
          ? database.query(shown, [], call)
          : database.query(shown, [], call, `set local statement_timeout = '${i}min'`),
      ),
    );
    const minutes = (i: number) => (i < 60 ? `${i}min` : '1h');
    answers.forEach((rows, i) => {
      expect(rows[0]?.setting).toBe(i % 2 === 0 ? usual : minutes(i));
    });
  });

  it('is rolled back completely when it fails, and the connection stays usable', async () => {
    const database = connect();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const insert = statement('small', `insert into ${store.names.memories} select 1 / $1::int`);
    const settings = `insert into ${store.names.memories} values (7)`;
    await failure(database.query(insert, [0], call, settings));
    expect(await run(database, `select n from ${store.names.memories}`)).toEqual([]);
    await database.query(insert, [1], call, settings);
    expect(await run(database, `select n from ${store.names.memories} order by n`)).toEqual([{ n: 1 }, { n: 7 }]);
  });

  it('reports why its settings failed, not that the transaction is aborted', async () => {
    const database = connect();
    const error = await failure(
      database.query(statement('small', 'select 1'), [], call, 'set local no_such_setting = 1'),
    );
    expect(error.cause).toMatchObject({ code: '42704' });
    expect(await run(database, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('fails when its commit does', async () => {
    const database = connect();
    await store.sql(
      `create schema ${store.names.schema};
       create table ${store.names.memories} (n int unique deferrable initially deferred);
       insert into ${store.names.memories} values (1)`,
    );
    const insert = statement('small', `insert into ${store.names.memories} values ($1)`);
    const error = await failure(database.query(insert, [1], call, 'select 1'));
    expect(error.cause).toMatchObject({ code: '23505' });
    expect(await run(database, `select n from ${store.names.memories}`)).toHaveLength(1);
  });
});

describe('prepared statements', () => {
  it('are used by name, each prepared once', async () => {
    const database = connect();
    await Promise.all(Array.from({ length: 10 }, () => run(database, 'select $1::int', [1])));
    const names = await prepared(database);
    expect(names).toHaveLength(2);
    // The embedded engine, whose session all clients share, adds a prefix.
    expect(names.some((name) => name.endsWith(statement('small', 'select $1::int').name))).toBe(true);
  });

  it('are not used when they are off', async () => {
    expect(await prepared(connect({ prepared_statements: 'off' }))).toEqual([]);
  });

  it('are not used any more once the session has lost them', async () => {
    const database = connect();
    await run(database, 'select $1::int as n', [1]);
    await run(database, 'deallocate all');
    const answers = await Promise.all([1, 2, 3].map((n) => run(database, 'select $1::int as n', [n])));
    expect(answers).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]]);
    expect(await prepared(database)).toEqual([]);
  });

  it('the same inside a transaction', async () => {
    const database = connect();
    const asked = statement('small', 'select $1::int as n');
    await database.query(asked, [1], call);
    await run(database, 'deallocate all');
    expect(await database.query(asked, [2], call, 'select 1')).toEqual([{ n: 2 }]);
    expect(await run(database, 'select 3 as n')).toEqual([{ n: 3 }]);
  });

  it('are not used any more if another client has taken the name', async ({ skip }) => {
    skip(store.url.includes('?host='), 'on the embedded engine every client has its own names');
    const database = connect();
    const { name } = statement('small', 'select $1::int as n');
    await run(database, `prepare ${name} as select 'theirs'`);
    expect(await run(database, 'select $1::int as n', [1])).toEqual([{ n: 1 }]);
    expect(await prepared(database)).toContain(name);
    expect(await prepared(database)).toHaveLength(2);
  });

  it('are not used any more when a migration outdates them', async () => {
    const database = connect();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const text = `select * from ${store.names.memories}`;
    await run(database, text);
    await store.sql(
      `alter table ${store.names.memories} add column m int; insert into ${store.names.memories} values (1, 2)`,
    );
    expect(await run(database, text)).toEqual([{ n: 1, m: 2 }]);
  });

  it('are always used when they are on', async () => {
    const database = connect({ prepared_statements: 'on' });
    await run(database, 'select $1::int as n', [1]);
    await run(database, 'deallocate all');
    const error = await failure(run(database, 'select $1::int as n', [1]));
    expect(error).toMatchObject({ code: 'provider_error', cause: { code: '26000' } });
    expect(error.message).not.toMatch(/prepared|omp_/);
  });

  it('have different names for different texts', () => {
    const names = ['select 1', 'select 2', 'select 1 '].map((text) => statement('small', text).name);
    expect(new Set(names).size).toBe(3);
    expect(statement('small', 'select 1')).toEqual(statement('small', 'select 1'));
    for (const name of names) expect(Buffer.byteLength(name)).toBeLessThan(64);
  });
});

describe('a call that is aborted', () => {
  const aborted = (reason: unknown): Call => callOf(AbortSignal.abort(reason));

  it('before a connection opens is not sent', async () => {
    const database = connect();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const gone = new OmpError('provider_error', 'gone');
    const insert = statement('small', `insert into ${store.names.memories} values (1)`);
    expect(await failure(database.query(insert, [], aborted(gone)))).toBe(gone);
    expect(await failure(connect().query(insert, [], aborted(gone), 'select 1'))).toBe(gone);
    expect(await run(database, `select count(*)::int as n from ${store.names.memories}`)).toEqual([{ n: 0 }]);
  });

  it('while its connection opens is not sent', async () => {
    const database = connect();
    await store.sql(`create schema ${store.names.schema}; create table ${store.names.memories} (n int)`);
    const controller = new AbortController();
    const gone = new OmpError('provider_error', 'gone');
    const insert = statement('small', `insert into ${store.names.memories} values (1)`);
    const pending = failure(database.query(insert, [], callOf(controller.signal)));
    controller.abort(gone);
    expect(await pending).toBe(gone);
    expect(await run(database, `select count(*)::int as n from ${store.names.memories}`)).toEqual([{ n: 0 }]);
  });
});

// The embedded engine has one session for all its clients, and ends with it.
describe.skipIf(SERVER_URL === '')(`a lost connection${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, () => {
  it('rejects what was running and is opened again', async () => {
    const application = randomName();
    const url = new URL(store.url);
    url.searchParams.set('application_name', application);
    const provider = await store.open({ url: url.href });
    const memory = await provider.add({ input: memoryOf('u', 'kept') }, call);
    // Waits until the sessions have ended: one that has not noticed the signal yet still answers.
    const kill = () =>
      store.sql('select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = $1', [
        application,
      ]);
    const read = () => provider.get(refTo(memory.id), call);
    const outcome = () =>
      read().then(
        (found) => expect(found).toEqual(memory) ?? true,
        (error: unknown) => expect(error).toMatchObject({ code: 'provider_error', provider: 'postgres' }) ?? false,
      );
    // So many calls that all connections are used and a lost one is noticed.
    const sessions = () => store.sql('select from pg_stat_activity where application_name = $1', [application]);
    const allWork = async () =>
      (await Promise.all(Array.from({ length: 40 }, outcome))).every((worked) => worked) &&
      (await sessions()).length === 4;
    for (let round = 0; round < 3; round++) {
      await until(allWork);
      const running = Promise.all(Array.from({ length: 40 }, outcome));
      expect(await kill()).toHaveLength(4);
      await running;
    }
    await until(allWork);
  });

  it('is reported by a public message', async () => {
    const database = connect();
    const pid = (await run(database, 'select pg_backend_pid() as pid'))[0]?.pid;
    const sleeping = failure(run(database, 'select pg_sleep(60)'));
    const waiting = failure(run(database, 'select 2'));
    await store.sql('select pg_terminate_backend($1)', [pid]);
    for (const error of [await sleeping, await waiting]) {
      expect(error).toMatchObject({ code: 'provider_error', provider: 'postgres' });
      expect(error.message).toMatch(/^the database /);
    }
    await until(() =>
      run(database, 'select 3 as n')
        .then(() => true)
        .catch(() => false),
    );
  });

  it('does not affect statements on another one', async () => {
    const database = connect({ connections: 2 });
    const running = async () =>
      (
        await store.sql<{ pid: number }>(`select pid from pg_stat_activity where state = 'active' and query like $1`, [
          `%${gate.wait}%pg_backend_pid%`,
        ])
      ).map(({ pid }) => pid);
    const twice = () => [1, 2].map(() => run(database, `select ${gate.wait}, pg_backend_pid() as pid`));
    let gate = await closedGate();
    const both = twice();
    await until(async () => (await running()).length === 2);
    await gate.open();
    const [doomed, kept] = (await Promise.all(both)).map(([row]) => row?.pid as number);
    gate = await closedGate();
    expect(doomed).not.toBe(kept);
    const outcomes = twice().map((asked) =>
      asked.then(
        (rows) => rows[0]?.pid,
        () => 'lost',
      ),
    );
    await until(async () => (await running()).length === 2);
    await store.sql('select pg_terminate_backend($1)', [doomed]);
    await until(async () => (await running()).length === 1);
    await gate.open();
    expect((await Promise.all(outcomes)).sort()).toEqual([kept, 'lost'].sort());
  });
});

describe('more statements than the queue holds', () => {
  it('[Decision 29] are rejected at once, and those before them are answered', async () => {
    const database = connect({ connections: 2, max_waiting: 3 });
    await run(database, 'select 1');
    const asked = Array.from({ length: 9 }, (_, n) => run(database, 'select $1::int as n', [n]));
    const settled = await Promise.allSettled(asked);
    const told = settled.map((end) => (end.status === 'fulfilled' ? end.value[0]?.n : end.reason));
    const refusal = expect.objectContaining({ code: 'rate_limited', provider: 'postgres', retryAfter: 1 });
    expect(told).toEqual([0, 1, 2, 3, 4, ...Array(4).fill(refusal)]);
    const again = Array.from({ length: 5 }, (_, n) => run(database, 'select $1::int as n', [n]));
    expect((await Promise.all(again)).map(([row]) => row?.n)).toEqual([0, 1, 2, 3, 4]);
  });

  it('[Decision 29] do not include those that were aborted or failed', async () => {
    const database = connect({ connections: 1, max_waiting: 1 });
    for (let round = 0; round < 5; round++) {
      await failure(run(database, 'select 1 / 0'));
      const leaving = new AbortController();
      const by = callOf(leaving.signal);
      const left = [1, 2].map(() => database.query(statement('small', 'select pg_sleep(0.02)'), [], by));
      leaving.abort(new OmpError('invalid_request', 'gone'));
      for (const gone of left) await failure(gone);
    }
    expect(await run(database, 'select 1 as n')).toEqual([{ n: 1 }]);
  });
});

it('closing answers pending statements', async () => {
  const database = connect();
  await run(database, 'select 1');
  const asked = [1, 2, 3].map((n) => run(database, 'select pg_sleep(0.01), $1::int as n', [n]));
  await database.close();
  expect((await Promise.all(asked)).map((rows) => rows[0]?.n)).toEqual([1, 2, 3]);
});

it.for([
  ['by name are in flight together', 'on', false],
  ['without names run one after the other, as a pooler requires', 'off', true],
] as const)('fifty statements at once on one connection %s', async ([, prepared_statements, single], { skip }) => {
  skip(SERVER_URL === '', NO_SERVER);
  const { seen, connectionString } = await openProxy(SERVER_URL);
  const database = connect({ config: { connectionString }, prepared_statements });
  const numbers = Array.from({ length: 50 }, (_, i) => i);
  const answers = await Promise.all(
    numbers.map((n) => database.query(statement('small', 'select $1::int as n'), [n], call)),
  );
  expect(answers.map(([row]) => row?.n)).toEqual(numbers);
  expect(seen.inFlight).toBe(0);
  expect(seen.most === 1).toBe(single);
});

/** Limit of characters that one session keeps prepared. */
const MOST = 96 * 1024;

/** As long as the search for some forty words. */
const padding = `/*${'x'.repeat(8_000)}*/`;
const shape = (n: number) => statement('small', `select $1::int + ${n} as n ${padding}`);
const HOT = statement('small', 'select $1::int as hot');
const KEPT = statement(
  'small',
  'select name, prepare_time::text as time, length(statement)::int as length from pg_prepared_statements',
);

it('[Decision 29] prepared statements of one session are bounded, and the ones in use stay', async () => {
  const db = connect({ prepared_statements: 'on' });
  await db.query(HOT, [0], call);
  // The embedded engine prefixes the names of each connection.
  const hot = async () => (await db.query(KEPT, [], call)).find(({ name }) => (name as string).endsWith(HOT.name));
  const before = await hot();
  expect(before).toBeDefined();
  const numbers = Array.from({ length: 150 }, (_, n) => n);
  for (const n of numbers) {
    expect(await db.query(shape(n), [1], call)).toEqual([{ n: n + 1 }]);
    await db.query(HOT, [n], call);
  }
  expect(await hot()).toEqual(before);
  // All at once, so some are closed while statements that need them are in flight.
  for (const again of [numbers, numbers.toReversed()]) {
    const answers = await Promise.all(again.map((n) => db.query(shape(n), [2], call)));
    expect(answers.map(([row]) => row?.n)).toEqual(again.map((n) => n + 2));
    await db.query(HOT, [0], call);
  }
  for (const n of numbers.slice(0, 20)) await db.query(shape(n), [1], call);
  const kept = await db.query(KEPT, [], call);
  expect(kept.reduce((sum, { length }) => sum + (length as number), 0)).toBeLessThanOrEqual(MOST);
  expect(kept.length).toBeGreaterThan(8);
});

it('[Decision 29] statements with too large values are rejected instead of queued', async () => {
  const sockets: Socket[] = [];
  let over = false;
  // Accepts connections and never answers.
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    if (over) socket.destroy();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  const db = openConnections({
    config: { host: '127.0.0.1', port, user: 'nobody', connectionTimeoutMillis: 600_000 },
    connections: 1,
    prepared_statements: 'on',
    acquire_timeout_ms: 600_000,
    query_timeout_ms: 600_000,
  });
  const large = 'a'.repeat(30 * 1024 * 1024);
  const given = new AbortController();
  const ask = (...values: unknown[]) => db.query(statement('small', 'select $1'), values, callOf(given.signal));
  // One connection works on the first; two are queued.
  const waiting = [ask(large), ask(large), ask(1)];
  await expect(ask([large])).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 1 });
  waiting.push(ask('small'));
  given.abort(new Error('gone'));
  for (const { status } of await Promise.allSettled(waiting)) expect(status).toBe('rejected');
  expect(db.stats().queue_length).toBe(0);
  over = true;
  for (const socket of sockets) socket.destroy();
  await db.close();
  await new Promise((closed) => server.close(closed));
});

it('[Decision 29] the cache of statement names is bounded and keeps the ones in use', () => {
  const remembered = rememberStatements();
  const hot = remembered('small', 'select 1');
  const cold = remembered('small', 'select 2');
  for (let i = 0; i < 300; i++) {
    expect(remembered('small', `select ${i} /* ${'a'.repeat(10_000)} */`).name).toMatch(/^omp_/);
    expect(remembered('small', 'select 1')).toBe(hot);
  }
  expect(remembered('small', 'select 2')).toEqual(cold);
  expect(remembered('small', 'select 2')).not.toBe(cold);
});
