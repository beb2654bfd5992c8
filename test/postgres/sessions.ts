import { randomInt } from 'node:crypto';
import pg from 'pg';
import { onTestFinished, vi } from 'vitest';
import { type Call, OmpError } from '#contract';
import {
  type ConnectionOptions,
  type Database,
  openConnections,
  statement,
} from '../../providers/postgres/client/connections.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import { call, openStore, randomName, type Store } from './store.ts';

/** A database on the server and somebody who looks at its sessions from outside. */
export interface Sessions {
  readonly database: Database;
  readonly store: Store;
  run(text: string, values?: readonly unknown[], as?: Call): ReturnType<Database['query']>;
  /** What the sessions of `database` run at this moment. */
  running(): Promise<string[]>;
  /** The sessions' process ids. */
  pids(): Promise<number[]>;
}

/** By default one connection, with deadlines no test reaches. Gone after the test. */
export async function openSessions({
  url = SERVER_URL,
  ...options
}: Partial<ConnectionOptions> & { url?: string } = {}): Promise<Sessions> {
  const store = await openStore();
  const application_name = randomName();
  const database = openConnections({
    config: { connectionString: url, application_name },
    connections: 1,
    prepared_statements: 'on',
    acquire_timeout_ms: 60_000,
    query_timeout_ms: 60_000,
    ...options,
  });
  onTestFinished(async () => {
    await database.close();
    await store.close();
  });
  const look = <Field extends string>(field: Field, where: string) =>
    store.sql<Record<Field, never>>(
      `select ${field} from pg_stat_activity where application_name = $1 and ${where} order by pid`,
      [application_name],
    );
  return {
    database,
    store,
    run: (text, values = [], as = call) => database.query(statement(text), values, as),
    running: async () => (await look('query', `state = 'active'`)).map(({ query }) => query),
    pids: async () => (await look('pid', 'true')).map(({ pid }) => pid),
  };
}

/** What a statement selects to go on only once the gate is opened: a lock on the server decides, no time. */
export interface Gate {
  readonly wait: string;
  open(): Promise<void>;
}

export async function closedGate(url = SERVER_URL): Promise<Gate> {
  const key = randomInt(2 ** 31);
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query('select pg_advisory_lock($1)', [key]);
  onTestFinished(() => holder.end());
  return {
    wait: `pg_advisory_xact_lock_shared(${key})`,
    open: async () => void (await holder.query('select pg_advisory_unlock($1)', [key])),
  };
}

/** From now on the deadlines of `database` pass when the test says so, however busy the machine is. Call it after `openSessions`. */
export function holdDeadlines(): { pass(ms: number): void } {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  onTestFinished(() => {
    // What looks at deadlines stops when nothing is under way.
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
  });
  return { pass: (ms) => void vi.advanceTimersByTime(ms) };
}

/** A call whose client can go away, and the reason it is told then. */
export function callThatGoes(): { call: Call; gone: OmpError; go: () => void } {
  const controller = new AbortController();
  const gone = new OmpError('invalid_request', 'gone');
  return { call: { ...call, signal: controller.signal }, gone, go: () => controller.abort(gone) };
}

/** The same as the gateway makes it: nobody has asked for its signal, and its own promise tells the caller. */
export function requestThatGoes(): ReturnType<typeof callThatGoes> {
  const { call: plain, gone, go } = callThatGoes();
  const unlessAborted = <Result>(work: Promise<Result>) => work;
  return {
    call: {
      ...plain,
      get signal() {
        return plain.signal;
      },
      unlessAborted,
    },
    gone,
    go,
  };
}

export const reasonOf = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    () => undefined,
    (reason: unknown) => reason,
  );
