import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { Call, ProviderStats } from '#contract';
import { openConnection } from './connections/connection.ts';
import { createSlots } from './connections/slots.ts';
import { dropTask, failTask, type Row, runTask, type Statement, type Tally, type Task } from './connections/task.ts';
import { createTurns } from './connections/turns.ts';
import type { Engine } from './embedded/engine.ts';
import { isCancelled, isPreparedStatementTrouble, tooManyWaiting } from './errors.ts';

export type { Row, Statement } from './connections/task.ts';

/**
 * Statements on a few connections. A call that is aborted is told at once, with the signal's reason; what was not sent
 * yet is not sent, what runs is cancelled on the server when it does not end by itself.
 */
export interface Database {
  /** Runs one statement. Rejects with `OmpError`. */
  query(statement: Statement, values: readonly unknown[], call: Call): Promise<Row[]>;
  /** The same inside a transaction of its own that begins with `settings` (`set local …`), alone on its connection. */
  queryWith(settings: string, statement: Statement, values: readonly unknown[], call: Call): Promise<Row[]>;
  stats(): Required<Pick<ProviderStats, 'connections' | 'waiting'>>;
  /** Answers what was asked before. */
  close(): Promise<void>;
}

/** Runs a statement that is given as text. */
export type Run = (text: string, values: readonly unknown[], call: Call) => Promise<Row[]>;

export interface ConnectionOptions {
  readonly config: pg.ClientConfig;
  readonly connections: number;
  readonly prepared_statements: 'auto' | 'on' | 'off';
  /** Longest wait of a statement for its turn, in milliseconds. */
  readonly acquire_timeout_ms: number;
  /** Statements that wait at once, at most, beside one for each connection; by default any number. */
  readonly max_waiting?: number;
  /** Longest time for one statement once it is its turn, in milliseconds. */
  readonly query_timeout_ms: number;
  /** Whether the server cancels statements when asked; by default it does. */
  readonly cancellable?: boolean;
  /** The embedded engine, where this process owns it: interrupted instead of cancelling. */
  readonly engine?: Pick<Engine, 'ready' | 'interrupt'> | undefined;
}

/** The name is derived from the text: sessions shared by gateways of different versions never mix up statements. */
export const statement = (text: string): Statement => ({
  name: `omp_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`,
  text,
});

/** Characters of the texts that are kept with their names; callers can cause some thousands. */
const MOST_REMEMBERED = 1024 * 1024;

/** The same, made once for a text. */
export function rememberStatements(): typeof statement {
  const known = new LRUCache<string, Statement>({
    maxSize: MOST_REMEMBERED,
    sizeCalculation: ({ text }) => text.length,
  });
  return (text) => known.get(text) ?? known.set(text, statement(text)).get(text) ?? statement(text);
}

/** Of the values of all statements that wait, beside those that are worked on. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;

/** How often deadlines are looked at: one timer for all, since one for each statement costs as much as a small one. */
const LOOK_MS = 25;
/** Searches under way for each connection that takes them: while one runs, the next is there. */
const SEARCHES = 2;
/** Other statements under way for each connection: enough to keep it busy. */
const OTHERS = 32;
/** How often a statement is sent that a cancel request hits by mistake. */
const MOST_SENT = 4;

/**
 * A few connections that everybody shares at once: statements are pipelined, the next is sent before the last is
 * answered. Measured at 1.3 to 1.7 times the throughput of a pool that lends each connection to one statement.
 *
 * What waits goes in turns by caller, searches apart from the rest (see `createTurns`).
 *
 * Alone on their connection are transactions, and behind a transaction pooler, where names cannot be used, all: older
 * ones (PgBouncer before 1.21) may take the session away when one statement is answered, though a part of the next has
 * arrived: its other part would then meet a nameless statement of somebody else.
 */
export function openConnections(options: ConnectionOptions): Database {
  const limits = { cancellable: true, ...options };
  const { connections, max_waiting = Number.POSITIVE_INFINITY } = options;
  const tally: Tally = { unanswered: 0, bytes: 0 };
  let named = options.prepared_statements !== 'off';
  let timer: NodeJS.Timeout | undefined;
  /** Told when nothing is under way. */
  let closing: (() => void) | undefined;

  /** What is sent again here has not acted. */
  const failed = (task: Task, error: unknown, shaken: boolean) => {
    if (task.told) return task.end?.();
    const lostName = task.named && isPreparedStatementTrouble(error);
    const hit = task.exposed && isCancelled(error);
    if ((hit || (lostName && shaken)) && task.sent < MOST_SENT) return slots.place(task);
    if (!lostName || options.prepared_statements !== 'auto') return dropTask(task, error);
    // A pooler that cannot carry names, or a session that lost them: from now on without.
    named = false;
    slots.place(task);
  };
  const slots = createSlots({
    count: connections,
    open: (events) => openConnection(options.config, limits, { ...events, failed }),
    manner: (task) => ({ named, alone: !named || task.settings !== undefined }),
    acquire_timeout_ms: options.acquire_timeout_ms,
  });
  const turnsOf = (most: number) => {
    const { acquire_timeout_ms } = options;
    return createTurns({ most, acquire_timeout_ms, start: (task) => slots.place(task, task.waiting) });
  };
  const searches = turnsOf(SEARCHES * Math.max(1, connections - 1));
  const others = turnsOf(OTHERS * connections);
  const look = () => {
    const now = performance.now();
    const active = [slots, searches, others].map((part) => part.look(now));
    if (active.includes(true)) return;
    clearInterval(timer);
    timer = undefined;
    closing?.();
  };
  const start = (task: Task) => {
    if (closing) return failTask(task, new Error('the connections are closed'));
    const waits = tally.unanswered > connections;
    if (tally.unanswered > connections + max_waiting || (waits && tally.bytes > MOST_WAITING_BYTES))
      return failTask(task, tooManyWaiting());
    timer ??= setInterval(look, LOOK_MS);
    (task.statement.heavy ? searches : others).enter(task);
  };

  return {
    query: (asked, values, call) => runTask({ statement: asked, values, settings: undefined, tally }, call, start),
    queryWith: (settings, asked, values, call) => runTask({ statement: asked, values, settings, tally }, call, start),
    stats() {
      const { open, busy } = slots.stats();
      return { connections: { open, busy, most: connections }, waiting: Math.max(0, tally.unanswered - busy) };
    },
    async close() {
      await new Promise<void>((done) => {
        closing = done;
        timer ??= setInterval(look, 0);
      });
      await slots.end();
    },
  };
}
