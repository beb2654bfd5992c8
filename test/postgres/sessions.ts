import { randomInt } from 'node:crypto';
import { type AddressInfo, createConnection, createServer } from 'node:net';
import pg from 'pg';
import { onTestFinished, vi } from 'vitest';
import { Call, OmpError } from '#contract';
import {
  type ConnectionOptions,
  type Database,
  openConnections,
  statement,
} from '../../providers/postgres/client/connections.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import { call, openStore, randomName, type TestDatabase } from './store.ts';

/** A database on the server, and what `pg_stat_activity` shows of its sessions. */
export interface Sessions {
  readonly database: Database;
  readonly store: TestDatabase;
  run(text: string, values?: readonly unknown[], as?: Call): ReturnType<Database['query']>;
  /** Statements of the sessions of `database` that sleep or wait for a lock: PostgreSQL ignores a cancel request before. */
  running(): Promise<string[]>;
  /** The sessions' process ids. */
  pids(): Promise<number[]>;
}

/** By default one connection with deadlines that no test reaches. Closed after the test. */
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
    run: (text, values = [], as = call) => database.query(statement('small', text), values, as),
    running: async () => (await look('query', `state = 'active' and wait_event is not null`)).map(({ query }) => query),
    pids: async () => (await look('pid', 'true')).map(({ pid }) => pid),
  };
}

/** A statement that selects `wait` blocks until the gate is opened: an advisory lock, no timing. */
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

/** From now on the test decides when time passes for the deadlines of `database`. Call it after `openSessions`. */
export function holdDeadlines(): { pass(ms: number): void } {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  onTestFinished(async () => {
    // The deadline timer stops when nothing is in flight; a cancel request may still be. With the timer left behind, closing
    // the database would wait for ever.
    while (vi.getTimerCount() > 0) {
      vi.advanceTimersByTime(100);
      await new Promise(setImmediate);
    }
    vi.useRealTimers();
  });
  return { pass: (ms) => void vi.advanceTimersByTime(ms) };
}

/** A call that the test can abort, and the reason it is rejected with. */
export function abortableCall(): { call: Call; reason: OmpError; abort: () => void } {
  const controller = new AbortController();
  const reason = new OmpError('invalid_request', 'gone');
  return { call: callOf(controller.signal), reason, abort: () => controller.abort(reason) };
}

/** The same as the gateway makes it for a request: its signal is made when it is first read. */
export function abortableRequest(): ReturnType<typeof abortableCall> {
  const reason = new OmpError('invalid_request', 'gone');
  const request = new Call('test', call.caller);
  return { call: request, reason, abort: () => request.abort(reason) };
}

export const reasonOf = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    () => undefined,
    (reason: unknown) => reason,
  );

const CANCEL_REQUEST = 80_877_102;
const TLS_REQUEST = 80_877_103;

/** Calls back with the type of every protocol message; the first message of a client has none. */
function messages(fromClient: boolean, each: (type: string) => void) {
  let rest = Buffer.alloc(0);
  let untyped = fromClient;
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = untyped ? 0 : 1;
      if (rest.length < head + 4) return;
      const size = head + rest.readUInt32BE(head);
      if (rest.length < size) return;
      if (!untyped) each(String.fromCharCode(rest[0] as number));
      rest = rest.subarray(size);
      untyped = false;
    }
  };
}

export interface ProxyOptions {
  /** Delays every cancel request until this resolves; false drops it. */
  readonly onCancel?: () => Promise<unknown>;
}

/** A proxy to the server that counts statements in flight, cancel requests and TLS requests. */
export async function openProxy(to: string, { onCancel = async () => true }: ProxyOptions = {}) {
  const url = new URL(to);
  const seen = { inFlight: 0, most: 0, cancels: 0, tlsRequests: 0 };
  const proxy = createServer((client) => {
    const server = createConnection(Number(url.port || 5432), url.hostname);
    // Sync ends a statement, ReadyForQuery its answer.
    const asked = messages(true, (type) => {
      if (type === 'S') seen.most = Math.max(seen.most, ++seen.inFlight);
    });
    const answered = messages(false, (type) => {
      if (type === 'Z' && seen.inFlight > 0) seen.inFlight--;
    });
    let first = true;
    let encrypted = false;
    client.on('data', (chunk: Buffer) => {
      const code = first && chunk.length >= 8 ? chunk.readUInt32BE(4) : 0;
      first = false;
      if (code === TLS_REQUEST) {
        seen.tlsRequests++;
        encrypted = true;
      }
      if (code === CANCEL_REQUEST) {
        seen.cancels++;
        // On a connection of its own, so it arrives even if the sender has given up.
        void onCancel().then((goesOn) => {
          if (goesOn === false) return;
          const own = createConnection(Number(url.port || 5432), url.hostname);
          own.on('error', () => {}).on('close', () => client.destroy());
          own.write(chunk);
        });
        return;
      }
      if (!encrypted) asked(chunk);
      server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => {
      if (!encrypted) answered(chunk);
      client.write(chunk);
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => {}).on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const through = new URL(url);
  through.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { seen, connectionString: through.href };
}
