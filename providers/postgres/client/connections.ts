import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Call, ProviderStats } from '#contract';
import { isCancelled, isPreparedStatementTrouble, queueFull } from '../errors.ts';
import { createConnectionSlots } from './connection-slots.ts';
import { createFairQueue } from './fair-queue.ts';
import { type InterruptibleEngine, openConnection } from './pipelined-connection.ts';
import {
  dropTask,
  type Row,
  rejectTask,
  runTask,
  type Statement,
  type Task,
  type TaskCounts,
} from './statement-task.ts';

export type { Row, Statement } from './statement-task.ts';

/**
 * Runs statements on a few connections. An aborted call rejects at once with the signal's reason. Its statement is not sent,
 * or is cancelled on the server if it does not end by itself.
 */
export interface Database {
  /** Runs one statement. Rejects with `OmpError`. */
  query(statement: Statement, values: readonly unknown[], call: Call): Promise<Row[]>;
  /** The same in a transaction that begins with `settings` (`set local …`) and has its connection for itself. */
  queryWith(settings: string, statement: Statement, values: readonly unknown[], call: Call): Promise<Row[]>;
  stats(): Required<Pick<ProviderStats, 'connections' | 'queue_length'>>;
  /** Resolves after pending statements were answered. */
  close(): Promise<void>;
}

/** Runs a statement given as text. */
export type Run = (text: string, values: readonly unknown[], call: Call) => Promise<Row[]>;

export interface ConnectionOptions {
  readonly config: pg.ClientConfig;
  readonly connections: number;
  readonly prepared_statements: 'auto' | 'on' | 'off';
  /** Longest time a statement may be queued, in milliseconds. */
  readonly acquire_timeout_ms: number;
  /** Statements that may be queued, beside one for each connection. Default: no limit. */
  readonly max_waiting?: number;
  /** Longest time one statement may run, in milliseconds. */
  readonly query_timeout_ms: number;
  /** Whether the server supports cancel requests. Default: true. */
  readonly cancellable?: boolean;
  /** The embedded engine, if this process owns it: it is interrupted instead of cancelling a statement. */
  readonly engine?: InterruptibleEngine | undefined;
}

/** Names the statement by a hash of its text, so gateways of different versions that share a session never mix them up. */
export const statement = (text: string): Statement => ({
  name: `omp_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`,
  text,
});

/** Characters of the texts kept with their names. Callers can cause some thousand different texts. */
const MAX_REMEMBERED = 1024 * 1024;

/** `statement` with a cache. */
export function rememberStatements(): typeof statement {
  const known = new LRUCache<string, Statement>({
    maxSize: MAX_REMEMBERED,
    sizeCalculation: ({ text }) => text.length,
  });
  return (text) => known.get(text) ?? known.set(text, statement(text)).get(text) ?? statement(text);
}

/** Of the values of all queued statements. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
/** Interval of the deadline checks. One timer for all: a timer for each statement costs as much as a small statement. */
const CHECK_MS = 25;
/** Searches in flight for each connection that takes them: the next one is there when one ends. */
const SEARCHES = 2;
/** Other statements in flight for each connection: enough to keep it busy. */
const OTHERS = 32;
/** How often to send a statement that a cancel request keeps hitting by mistake. */
const MAX_SENT = 4;

/**
 * A few connections that all callers share. Statements are pipelined: the next is sent before the last is answered.
 * Measured at 1.3 to 1.7 times the throughput of a pool that lends each connection to one statement. Callers are served
 * round-robin in two fair queues, one for searches and one for everything else.
 *
 * Transactions have their connection for themselves. So has every statement behind a transaction pooler that cannot carry
 * names: PgBouncer before 1.21 may take the session away once a statement is answered, even if part of the next one has
 * arrived, and the other part would then meet an unnamed statement of another client.
 */
export function openConnections(options: ConnectionOptions): Database {
  const limits = { cancellable: true, ...options };
  const { connections, acquire_timeout_ms, max_waiting = Number.POSITIVE_INFINITY } = options;
  const counts: TaskCounts = { pending: 0, bytes: 0 };
  let named = options.prepared_statements !== 'off';
  let timer: NodeJS.Timeout | undefined;
  /** Called when nothing is in flight. */
  let closing: (() => void) | undefined;

  /** Sends again only statements that have not run. */
  const failed = (task: Task, error: unknown, preparationLost: boolean) => {
    if (task.settled) return task.end?.();
    const lostName = task.named && isPreparedStatementTrouble(error);
    const hitByMistake = task.cancelExposed && isCancelled(error);
    if ((hitByMistake || (lostName && preparationLost)) && task.sentTimes < MAX_SENT) return slots.assign(task);
    if (!lostName || options.prepared_statements !== 'auto') return dropTask(task, error);
    // A pooler that cannot carry names, or a session that lost them: use no names from now on.
    named = false;
    slots.assign(task);
  };
  const slots = createConnectionSlots({
    count: connections,
    open: (events) => openConnection(options.config, limits, { ...events, failed }),
    modeOf: (task) => ({ named, exclusive: !named || task.settings !== undefined }),
    acquire_timeout_ms,
  });
  const queueOf = (limit: number) =>
    createFairQueue({ limit, acquire_timeout_ms, start: (task) => slots.assign(task, task.queuedAt) });
  const searches = queueOf(SEARCHES * Math.max(1, connections - 1));
  const others = queueOf(OTHERS * connections);
  const checkDeadlines = () => {
    const now = performance.now();
    const active = [slots, searches, others].map((part) => part.checkDeadlines(now));
    if (active.includes(true)) return;
    clearInterval(timer);
    timer = undefined;
    closing?.();
  };
  const start = (task: Task) => {
    if (closing) return rejectTask(task, new Error('the connections are closed'));
    const queued = counts.pending > connections;
    if (counts.pending > connections + max_waiting || (queued && counts.bytes > MAX_QUEUED_BYTES))
      return rejectTask(task, queueFull());
    timer ??= setInterval(checkDeadlines, CHECK_MS);
    (task.statement.heavy ? searches : others).add(task);
  };
  const run = (settings: string | undefined, statement: Statement, values: readonly unknown[], call: Call) =>
    runTask({ statement, values, settings, counts }, call, start);

  return {
    query: (statement, values, call) => run(undefined, statement, values, call),
    queryWith: run,
    stats() {
      const { open, busy } = slots.stats();
      return { connections: { open, busy, max: connections }, queue_length: Math.max(0, counts.pending - busy) };
    },
    async close() {
      await new Promise<void>((done) => {
        closing = done;
        timer ??= setInterval(checkDeadlines, 0);
      });
      await slots.end();
    },
  };
}
