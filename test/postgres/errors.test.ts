import { inspect } from 'node:util';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { openConnections, statement } from '../../providers/postgres/client/connections.ts';
import { lostConnection, toOmpError, unreachable } from '../../providers/postgres/errors.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openMemoriesOf } from '../support/memories.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { recordingLog } from '../support/subject.ts';
import { call, openStore, randomName, until } from './store.ts';

const SECRET = 'hunter2-top-secret';

describe('public messages', () => {
  it.each([
    ['28P01', 'the database rejected the credentials of the gateway'],
    ['28000', 'the database rejected the credentials of the gateway'],
    ['3D000', 'the database does not exist'],
    ['08006', 'the database cannot be reached'],
    ['42501', 'the gateway lacks a privilege in the database; "omp-gateway doctor" prints the grant that helps'],
    ['42703', 'the table has changed since the gateway started, maybe by a re-embed; restart the gateway'],
    ['42P01', 'the table does not exist, or has changed since the gateway started; restart the gateway'],
    ['42704', 'the database failed'],
    ['53100', 'the database is out of disk space'],
    ['53300', 'the database is out of resources'],
    ['57014', 'the database took too long'],
    ['57P01', 'the database is shutting down or starting up'],
    ['58030', 'the database reported a system error'],
    ['XX000', 'the database failed'],
    ['ECONNREFUSED', 'the database cannot be reached'],
    ['ECONNRESET', 'the database closed the connection'],
    ['ENOTFOUND', 'the database cannot be reached'],
    ['EAI_AGAIN', 'the database cannot be reached'],
    ['ETIMEDOUT', 'the database cannot be reached'],
    ['', 'the database failed'],
  ])('of %s is "%s"', (code, message) => {
    const cause = Object.assign(new Error(`${SECRET} at db.internal:5432`), { code });
    const error = toOmpError(cause);
    expect(error).toMatchObject({ code: 'provider_error', provider: 'postgres', message, cause });
  });

  it.each([
    ['nothing', undefined],
    ['text', SECRET],
    ['no code', new Error(SECRET)],
    ['a number', { code: 7 }],
  ])('of an error with %s is still a sentence', (_, cause) => {
    expect(toOmpError(cause)).toMatchObject({ code: 'provider_error', message: 'the database failed' });
  });

  it.each([
    // Nothing was sent, or it was rolled back.
    ['ECONNREFUSED', 'safe', true],
    ['EHOSTUNREACH', 'safe', true],
    ['ENOTFOUND', 'safe', true],
    ['53300', 'safe', true],
    ['57P03', 'safe', true],
    ['40001', 'safe', false],
    ['40P01', 'safe', false],
    // What it did is not known.
    ['ECONNRESET', 'reads', true],
    ['EPIPE', 'reads', true],
    ['ETIMEDOUT', 'reads', true],
    ['08006', 'reads', true],
    ['08P01', 'reads', true],
    ['57P01', 'reads', false],
    ['57P02', 'reads', false],
    // A server that works has answered.
    ['22P02', undefined, false],
    ['23505', undefined, false],
    ['28P01', undefined, false],
    ['42P01', undefined, false],
    ['53100', undefined, false],
    ['53200', undefined, false],
    ['57014', undefined, false],
    ['58030', undefined, false],
    ['XX000', undefined, false],
    ['', undefined, false],
  ] as const)(
    '[Decision 27] [Decision 28] of %s may be tried again: %s; is a sign of being down: %s',
    (code, retry, down) => {
      const { retry: told, down: sign } = toOmpError(Object.assign(new Error(SECRET), { code }));
      expect({ told, sign }).toEqual({ told: retry, sign: down });
    },
  );

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
      down: true,
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
      const error = await connections.query(statement(text), [value], call).catch((thrown: unknown) => thrown);
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

/** Everything an operator would see of a failed start. */
const told = async (url: string): Promise<string> => {
  const context = {
    embedder: hashingEmbedder(),
    ranking: { mode: 'hybrid', keyword_weight: 0.5 },
    audit: undefined,
    data_dir: '/nowhere',
    log: recordingLog(),
  } as const;
  const messages: string[] = [];
  try {
    const provider = await openMemoriesOf('postgres', { url, connect_timeout_ms: 2_000 }, context);
    await provider.close();
  } catch (thrown) {
    for (let error: unknown = thrown; error instanceof Error; error = error.cause) messages.push(error.message);
  }
  return [...messages, JSON.stringify(context.log.lines)].join('\n');
};

describe('starting', () => {
  it('without a server says so, and no secret', async () => {
    const text = await told(`postgres://someone:${SECRET}@127.0.0.1:1/omp`);
    expect(text).toMatch(
      /cannot connect to the database: the database cannot be reached \(ECONNREFUSED\); check DATABASE_URL/,
    );
    expect(text).not.toContain(SECRET);
  });

  it('with a host that does not exist says so, and no secret', async () => {
    const text = await told(`postgres://someone:${SECRET}@no-such-host.invalid/omp`);
    expect(text).toMatch(/cannot be reached \((ENOTFOUND|EAI_AGAIN)\)/);
    expect(text).not.toContain(SECRET);
  });
});

describe.skipIf(SERVER_URL === '')(`on a server${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, () => {
  const elsewhere = (change: (url: URL) => void): string => {
    const url = new URL(SERVER_URL);
    url.password = SECRET;
    change(url);
    return url.href;
  };

  it('a role that does not exist is reported as rejected credentials', async () => {
    const text = await told(
      elsewhere((url) => {
        url.username = randomName();
      }),
    );
    expect(text).toMatch(/rejected the credentials of the gateway \(28/);
    expect(text).not.toContain(SECRET);
  });

  it('a database that does not exist is reported', async () => {
    const text = await told(
      elsewhere((url) => {
        url.pathname = `/${randomName()}`;
      }),
    );
    expect(text).toMatch(/cannot connect to the database: the database does not exist \(3D000\)/);
    expect(text).not.toContain(SECRET);
  });

  it('a cancelled statement took too long, and the next one works', async () => {
    const store = await openStore();
    const database = openConnections({
      config: { connectionString: SERVER_URL },
      connections: 1,
      prepared_statements: 'auto',
      acquire_timeout_ms: 60_000,
      query_timeout_ms: 60_000,
    });
    try {
      const [session] = await database.query(statement('select pg_backend_pid() as pid'), [], call);
      const slow = database.query(statement('select pg_sleep(60)'), [], call).catch((error: unknown) => error);
      const behind = database.query(statement('select 1 as n'), [], call);
      const sleeping = `select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'`;
      await until(async () => (await store.sql(sleeping, [session?.pid])).length > 0);
      await store.sql('select pg_cancel_backend($1)', [session?.pid]);
      expect(await slow).toMatchObject({ code: 'provider_error', message: 'the database took too long' });
      expect(await behind).toEqual([{ n: 1 }]);
    } finally {
      await database.close();
      await store.close();
    }
  });
});
