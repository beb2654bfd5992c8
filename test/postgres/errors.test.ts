import { inspect } from 'node:util';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OmpError } from '#contract';
import { openConnections, statement } from '../../providers/postgres/client/connections.ts';
import { lostConnection, toOmpError, unreachable } from '../../providers/postgres/postgres-errors.ts';
import { eventually } from '../support/eventually.ts';
import { IS_CITUS, NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { contextOf } from '../support/requests.ts';
import { serverForTest } from '../support/server.ts';
import { openStoreOf } from '../support/stores.ts';
import type { recordingLog } from '../support/subject.ts';
import { testDatabase } from './databases.ts';
import { call, openStore, randomName } from './store.ts';

const SECRET = 'hunter2-top-secret';

// `safe`: nothing was sent, or it was rolled back. `reads`: its effect is not known. The flag says that the server is down.
const CODES = [
  ['08001', 'reads', true, 'the database cannot be reached'],
  ['08006', 'reads', false, 'a node of the database cannot be reached'],
  ['08P01', 'reads', true, 'the database cannot be reached'],
  ['22P02', undefined, false, 'the database failed'],
  ['23505', undefined, false, 'the database failed'],
  [
    '25006',
    undefined,
    false,
    'the database is read-only: it is a standby, or default_transaction_read_only is on; set DATABASE_URL to the primary, or turn that off',
  ],
  ['28000', undefined, false, 'the database rejected the credentials of the gateway'],
  ['28P01', undefined, false, 'the database rejected the credentials of the gateway'],
  ['3D000', undefined, false, 'the database does not exist'],
  ['40001', 'safe', false, 'the database failed'],
  ['40P01', 'safe', false, 'the database failed'],
  [
    '42501',
    undefined,
    false,
    'the gateway lacks a privilege in the database; "omp-gateway doctor" prints the grant that helps',
  ],
  [
    '42703',
    undefined,
    false,
    'the table has changed since the gateway started, maybe by a re-embed; restart the gateway',
  ],
  ['42704', undefined, false, 'the database failed'],
  [
    '42P01',
    undefined,
    false,
    'the table does not exist, or has changed since the gateway started; restart the gateway',
  ],
  ['53100', undefined, false, 'the database is out of disk space'],
  ['53200', undefined, false, 'the database is out of resources'],
  ['53300', 'safe', true, 'the database is out of resources'],
  ['57014', undefined, false, 'the database took too long'],
  ['57P01', 'reads', false, 'the database is shutting down or starting up'],
  ['57P02', 'reads', false, 'the database is shutting down or starting up'],
  ['57P03', 'safe', true, 'the database is shutting down or starting up'],
  ['58030', undefined, false, 'the database reported a system error'],
  ['XX000', undefined, false, 'the database failed'],
  ['EAI_AGAIN', 'safe', true, 'the database cannot be reached'],
  ['ECONNREFUSED', 'safe', true, 'the database cannot be reached'],
  ['ECONNRESET', 'reads', true, 'the database closed the connection'],
  ['EHOSTUNREACH', 'safe', true, 'the database cannot be reached'],
  ['ENOTFOUND', 'safe', true, 'the database cannot be reached'],
  ['EPIPE', 'reads', true, 'the database closed the connection'],
  ['ETIMEDOUT', 'reads', true, 'the database cannot be reached'],
  ['', undefined, false, 'the database failed'],
] as const;

describe('the error of the API', () => {
  it.each(CODES)('[Decision 27] [Decision 28] for %s: retry %s, down %s, "%s"', (code, retry, down, message) => {
    const cause = Object.assign(new Error(`${SECRET} at db.internal:5432`), { code });
    const { code: told, provider, message: said, retry: again, down: sign, cause: kept } = toOmpError(cause);
    expect({ told, provider, said, again, sign }).toEqual({
      ...{ told: 'provider_error', provider: 'postgres', said: message, again: retry, sign: down },
    });
    expect(kept).toBe(cause);
  });

  it.each([
    ['nothing', undefined],
    ['text', SECRET],
    ['no code', new Error(SECRET)],
    ['a number', { code: 7 }],
  ])('for an error with %s is a sentence', (_, cause) => {
    expect(toOmpError(cause)).toMatchObject({ code: 'provider_error', message: 'the database failed' });
  });

  it('[Decision 27] of a connection depends on whether anything was sent', () => {
    for (const code of [undefined, '57P01', 'ECONNRESET', 'ETIMEDOUT']) {
      const cause = Object.assign(new Error(SECRET), { code });
      expect(unreachable(cause)).toMatchObject({ retry: 'safe', down: true });
      expect(lostConnection(cause)).toMatchObject({ retry: 'reads', down: true });
    }
    const refused = Object.assign(new Error(SECRET), { code: '28P01' });
    expect(unreachable(refused)).toMatchObject({ retry: undefined, down: true });
  });

  it('[Decision 28] of a time limit that has passed is that it took too long', () => {
    const cause = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    expect(toOmpError(cause)).toMatchObject({
      message: 'the database took too long',
      retry: undefined,
      down: 'suspected',
      cause,
    });
  });

  it('of what the driver made up is what happened to the connection', () => {
    const cause = new Error(SECRET);
    expect(lostConnection(cause)).toMatchObject({ message: 'the database closed the connection', cause });
    expect(unreachable(cause)).toMatchObject({ message: 'the database cannot be reached', cause });
    const starting = Object.assign(new Error(SECRET), { code: '57P03' });
    expect(unreachable(starting).message).toBe('the database is shutting down or starting up');
  });

  it('of an OmpError stays', () => {
    const error = new OmpError('rate_limited', 'later');
    expect(toOmpError(error)).toBe(error);
  });
});

it('[Decision 31] a database that is read-only is not ready and says why, and answers reads', async ({ skip }) => {
  skip(SERVER_URL === '' || IS_CITUS, NO_SERVER);
  const { url, sql } = await testDatabase();
  const store = await openStoreOf('postgres', { url }, contextOf());
  onTestFinished(() => store.close());
  const { client } = await serverForTest({ provider: store });
  const { id } = await client.add({ user_id: 'ana', content: 'tea' });
  const readOnly = async (value: 'on' | 'off') => {
    await sql(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = ${value}`);
    await sql(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
  };
  const ready = (status: number, state: string) =>
    eventually(async () => expect(await client.ask('/readyz')).toMatchObject({ status, body: { status: state } }));

  await readOnly('on');
  await ready(503, 'read-only');
  const error = {
    code: 'provider_error',
    message: expect.stringMatching(/^the database is read-only: .*DATABASE_URL/),
  };
  expect(await client.ask('/healthz')).toMatchObject({ status: 503, body: { error } });
  const adding = await client.tell('POST', '/memories', { user_id: 'ana', content: 'coffee' });
  expect(adding).toMatchObject({ status: 502, body: { error } });
  expect((await client.get(id)).content).toBe('tea');

  await readOnly('off');
  await ready(200, 'ready');
  await client.add({ user_id: 'ana', content: 'coffee' });
});

describe('what is logged', () => {
  it('[Decision 16] of an error of the server is its code and constraint, and none of the texts that a trigger raises', async () => {
    const store = await openStore();
    const table = `${store.names.schema}.notes`;
    await store.sql(
      `create schema ${store.names.schema}; create table ${table} (content text not null constraint short check (length(content) < 60));
       create function ${store.names.schema}.refuse() returns trigger language plpgsql as $$ begin
         if new.content is null or new.content not like '%raise%' then return new; end if;
         raise exception '%', new.content using errcode = '23514', detail = new.content, hint = new.content, column = new.content,
           constraint = new.content, datatype = new.content, table = new.content, schema = new.content;
       end $$;
       create trigger refuse before insert on ${table} for each row execute function ${store.names.schema}.refuse()`,
    );
    const connections = openConnections({
      config: { connectionString: store.url },
      connections: 1,
      prepared_statements: 'off',
      acquire_timeout_ms: 5_000,
      query_timeout_ms: 5_000,
    });
    const logged = async (text: string, value: string | null) => {
      const error = await connections.query(statement('small', text), [value], call).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OmpError);
      const lines: string[] = [];
      pino({}, { write: (line: string) => void lines.push(line) }).error({ err: error }, 'request failed');
      const line = `${lines}${inspect(error, { depth: 9 })}${(error as Error).stack}`;
      expect(line).not.toContain(SECRET);
      return line;
    };
    const insert = `insert into ${table} values ($1)`;
    expect(await logged(insert, `${SECRET} raise`)).toMatch(/23514/);
    expect(await logged(insert, SECRET.repeat(5))).toMatch(/SQLSTATE 23514 .*constraint short/);
    expect(await logged(insert, null)).toMatch(/SQLSTATE 23502 .*column content/);
    expect(await logged('select $1::text::uuid', SECRET)).toMatch(/22P02/);
    expect(await logged('select $1::text::json', SECRET)).toMatch(/SQLSTATE/);
    await connections.close();
    await store.close();
  });
});

/** Everything that a failed start prints. */
const outputOf = async (url: URL): Promise<string> => {
  const context = contextOf({ data_dir: '/nowhere' });
  const messages: string[] = [];
  try {
    const provider = await openStoreOf('postgres', { url: url.href, connect_timeout_ms: 2_000 }, context);
    await provider.close();
  } catch (thrown) {
    for (let error: unknown = thrown; error instanceof Error; error = error.cause) messages.push(error.message);
  }
  return [...messages, JSON.stringify((context.log as ReturnType<typeof recordingLog>).lines)].join('\n');
};

const NO_LISTENER = 'postgres://omp@127.0.0.1:1/omp';

it.for<[string, string, object, RegExp]>([
  [
    'server',
    NO_LISTENER,
    {},
    /cannot connect to the database \(ECONNREFUSED\): nothing listens there; check host and port in DATABASE_URL/,
  ],
  ['host', NO_LISTENER, { hostname: 'no-such-host.invalid' }, /\((ENOTFOUND|EAI_AGAIN)\): .*the host in DATABASE_URL/],
  [
    'role',
    SERVER_URL,
    { username: randomName() },
    /\(28\w+\): the database rejected the credentials; .*DATABASE_URL.*PGPASSWORD.*POSTGRES_PASSWORD/,
  ],
  [
    'database',
    SERVER_URL,
    { pathname: randomName() },
    /cannot connect to the database \(3D000\): the database does not exist/,
  ],
])(
  'a start with a %s that does not exist says so, and shows no password',
  async ([, base, change, message], { skip }) => {
    skip(base === '', NO_SERVER);
    const url = Object.assign(new URL(base), { password: SECRET }, change);
    const output = await outputOf(url);
    expect(output).toMatch(message);
    expect(output).not.toContain(SECRET);
  },
);
