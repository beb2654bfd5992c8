import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Call, ProviderStats } from '#provider';
import { isCancelled, isPreparedStatementTrouble, queueFull, tooBusy, unreachable } from '../postgres-errors.ts';
import { createCount, createFairQueue, createHeavyLimit, rejectExpired } from './fair-queue.ts';
import { type ConnectionOptions, openConnection, type PipelinedConnection } from './pipelined-connection.ts';
import {
  createTask,
  dropTask,
  endTask,
  isAbandoned,
  type Row,
  rejectTask,
  type Statement,
  type Task,
  type TaskCounts,
  type Weight,
} from './task.ts';

export type { ConnectionOptions } from './pipelined-connection.ts';
export type { Row, Statement, Weight } from './task.ts';

/**
 * Runs statements on a few connections. An aborted call rejects at once with the signal's reason. Its statement is not sent,
 * or is cancelled on the server if it does not end by itself.
 */
export interface Database {
  /**
   * Runs one statement. Rejects with `OmpError`. `settings` (`set local …`): in a transaction that begins with them and has its
   * connection for itself.
   */
  query(statement: Statement, values: readonly unknown[], call: Call, settings?: string): Promise<Row[]>;
  stats(): Required<Pick<ProviderStats, 'connections' | 'queue_length'>>;
  /** Resolves after pending statements were answered. */
  close(): Promise<void>;
}

/** A statement and its values, ready to be sent. */
export interface Query {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** How a statement runs: its weight, and settings if it has any. */
type How = Weight | { readonly weight: Weight; readonly settings: string };

/** `Database.query` with the text of the statement. */
export type Run = (how: How, text: string, values: readonly unknown[], call: Call) => Promise<Row[]>;

export const runOn =
  (db: Database, make: typeof statement): Run =>
  (how, text, values, call) =>
    typeof how === 'string'
      ? db.query(make(how, text), values, call)
      : db.query(make(how.weight, text), values, call, how.settings);

/** Names the statement by a hash of its text, so gateways of different versions that share a session never mix them up. */
export const statement = (weight: Weight, text: string): Statement => ({
  name: `omp_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`,
  text,
  weight,
});

/** Characters of the texts kept with their names. Callers can cause some thousand different texts. */
const MAX_REMEMBERED = 1024 * 1024;

/** `statement` with a cache. Without it a get takes a tenth more processor time. */
export function rememberStatements(): typeof statement {
  const known = new LRUCache<string, Statement>({
    maxSize: MAX_REMEMBERED,
    sizeCalculation: ({ text }) => text.length,
  });
  return (weight, text) => {
    const found = known.get(text);
    if (found?.weight === weight) return found;
    const made = statement(weight, text);
    known.set(text, made);
    return made;
  };
}

/** Makes statements with their values. */
export const queriesOf =
  (make: typeof statement) =>
  (weight: Weight, text: string, values: readonly unknown[]): Query => ({ statement: make(weight, text), values });

/** Limit of the bytes of the values of all queued statements. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
/** Interval of the deadline checks. One timer for all: a timer for each statement costs as much as a small statement. */
const CHECK_MS = 25;
/** Other statements in flight for each connection: enough to keep it busy. */
const OTHERS = 32;

/**
 * A few connections that all callers share. Statements are pipelined: the next is sent before the last is answered.
 * Measured at 1.3 to 1.7 times the throughput of a pool that lends each connection to one statement. Callers are served
 * round-robin in two fair queues, one for heavy statements and one for everything else, which by themselves cost nothing measurable.
 *
 * Transactions have their connection for themselves. So has every statement behind a transaction pooler that cannot carry
 * names: PgBouncer before 1.21 may take the session away once a statement is answered, even if part of the next one has
 * arrived, and the other part would then meet an unnamed statement of another client.
 */
export function openConnections(options: ConnectionOptions): Database {
  const { connections, acquire_timeout_ms, max_waiting = Number.POSITIVE_INFINITY } = options;
  const counts: TaskCounts = { pending: 0, bytes: 0 };
  let timer: NodeJS.Timeout | undefined;
  /** Called when nothing is in flight. */
  let closing: (() => void) | undefined;

  const slots = new ConnectionSlots(options);
  const run = (task: Task) => slots.assign(task, task.queuedAt);
  const heavy = createFairQueue(createHeavyLimit(Math.max(1, connections - 1)), acquire_timeout_ms, run);
  const others = createFairQueue(createCount(connections * OTHERS), acquire_timeout_ms, run);
  const checkDeadlines = () => {
    const now = performance.now();
    const active = [slots.checkDeadlines(now), heavy.checkDeadlines(now), others.checkDeadlines(now)];
    if (active.includes(true)) return;
    clearInterval(timer);
    timer = undefined;
    closing?.();
  };

  return {
    query(statement, values, call, settings) {
      return new Promise((resolve, reject) => {
        const task = createTask({ statement, values, settings, call, counts, resolve, reject });
        // Its call is aborted already.
        if (task.settled) return;
        if (closing) return rejectTask(task, new Error('the connections are closed'));
        const queued = counts.pending > connections;
        if (counts.pending > connections + max_waiting || (queued && counts.bytes > MAX_QUEUED_BYTES))
          return rejectTask(task, queueFull());
        timer ??= setInterval(checkDeadlines, CHECK_MS);
        (statement.weight === 'heavy' ? heavy : others).enqueue(task);
      });
    },
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

/** How often to send a statement that a cancel request keeps hitting by mistake. */
const MAX_SENT = 4;
/** A slot whose connection failed to open is avoided for this time while others work. */
const AVOID_MS = 1_000;
/** More than the load of any connection that works. */
const AVOIDED = Number.MAX_SAFE_INTEGER / 2;
/** How many statements a light one waits behind to share their system call: without it a get takes a quarter more processor time. */
const WORTH_SHARING = 8;
/** A queued task weighs more than many tasks already sent. */
const QUEUED = 1_000;

interface Slot {
  opening: Promise<void> | undefined;
  /** Undefined unless it is open. */
  connection: PipelinedConnection | undefined;
  avoidUntil: number;
  /** Tasks not sent yet, oldest first. */
  readonly queue: Task[];
}

/**
 * A fixed number of slots for connections. The first task of a slot opens its connection, and opens it again after a loss.
 * If there are several slots, the last one takes no heavy statements: others then never wait for them.
 */
class ConnectionSlots {
  readonly #options: ConnectionOptions;
  readonly #slots: readonly Slot[];
  /** All connections, including those that only finish what was sent. */
  readonly #connections = new Set<PipelinedConnection>();
  /** Whether statements are now sent by their names. */
  #named: boolean;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const slot = () => ({ opening: undefined, connection: undefined, avoidUntil: 0, queue: [] });
    this.#slots = Array.from({ length: options.connections }, slot);
    this.#named = options.prepared_statements !== 'off';
  }

  /**
   * Sends the task on the least loaded connection, as soon as that has room. Taking turns would cost a get an eighth more
   * processor time, and statements would wait for long ones. `queuedAt`: when its deadline began, by default now.
   */
  assign(task: Task, queuedAt?: number): void {
    const now = performance.now();
    task.queuedAt = queuedAt ?? now;
    let [slot, ...others] = this.#slotsFor(task) as [Slot, ...Slot[]];
    let least = weight(slot, task, now);
    for (const other of others) {
      const next = weight(other, task, now);
      if (next < least) [slot, least] = [other, next];
    }
    slot.queue.push(task);
    this.#fill(slot);
  }

  /** Rejects tasks past their deadline. Returns false if nothing is in flight. */
  checkDeadlines(now: number): boolean {
    for (const connection of this.#connections) connection.checkDeadlines(now);
    for (const { queue, connection } of this.#slots) {
      rejectExpired(queue, now - this.#options.acquire_timeout_ms, (task) =>
        dropTask(task, connection ? tooBusy() : unreachable(new Error('no connection in time'))),
      );
    }
    return this.stats().busy > 0 || this.#slots.some(({ queue }) => queue.length > 0);
  }

  /** Open connections, and how many of them have work. */
  stats(): { readonly open: number; readonly busy: number } {
    const open = [...this.#connections];
    return { open: open.length, busy: open.filter((connection) => connection.load(0) > 0).length };
  }

  /** Call it when nothing is in flight. */
  async end(): Promise<void> {
    await Promise.all(this.#slots.map(({ opening }) => opening));
    await Promise.all([...this.#connections].map((connection) => connection.end()));
  }

  #slotsFor({ statement }: Task): readonly Slot[] {
    return statement.weight === 'heavy' && this.#slots.length > 1 ? this.#slots.slice(0, -1) : this.#slots;
  }

  async #openSlot(slot: Slot): Promise<void> {
    try {
      const connection = await openConnection(this.#options, {
        failed: (...failure) => this.#failed(...failure),
        freed: () => this.#fill(slot),
        draining: () => {
          slot.connection = undefined;
          this.#fill(slot);
        },
        closed: () => this.#connections.delete(connection),
      });
      slot.connection = connection;
      this.#connections.add(connection);
    } catch (error) {
      slot.avoidUntil = performance.now() + AVOID_MS;
      const othersWork = this.#slots.some((other) => other.connection !== undefined);
      for (const task of slot.queue.splice(0)) {
        if (othersWork) this.assign(task);
        else dropTask(task, unreachable(error));
      }
    }
    slot.opening = undefined;
    this.#fill(slot);
  }

  /** Sends as much as there is room for. An idle connection takes tasks queued for another one. */
  #fill(slot: Slot): void {
    for (;;) {
      const helps = slot.queue.length === 0 && slot.connection?.load(0) === 0;
      const { queue } = helps ? (this.#slots.find((other) => this.#mayTake(slot, other)) ?? slot) : slot;
      const [task] = queue;
      if (!task) return;
      if (!slot.connection) {
        slot.opening ??= this.#openSlot(slot);
        return;
      }
      // The call may have been aborted while the task was queued.
      if (isAbandoned(task)) {
        queue.shift();
        endTask(task);
        continue;
      }
      if (!slot.connection.hasRoom(task, this.#named)) return;
      queue.shift();
      slot.connection.send(task, this.#named);
    }
  }

  /** Sends again only statements that have not run. */
  #failed(task: Task, error: unknown, preparationLost: boolean): void {
    const lostName = task.named && isPreparedStatementTrouble(error);
    const hitByMistake = task.cancelExposed && isCancelled(error);
    if (task.settled) {
      endTask(task);
    } else if ((hitByMistake || (lostName && preparationLost)) && task.sentTimes < MAX_SENT) {
      this.assign(task);
    } else if (lostName && this.#options.prepared_statements === 'auto') {
      // A pooler that cannot carry names, or a session that lost them: use no names from now on.
      this.#named = false;
      this.assign(task);
    } else {
      dropTask(task, error);
    }
  }

  /** Whether the slot may take the next task of another one. */
  #mayTake(slot: Slot, { queue: [task] }: Slot): boolean {
    return task !== undefined && this.#slotsFor(task).includes(slot);
  }
}

function weight({ connection, queue, avoidUntil }: Slot, { statement }: Task, now: number): number {
  if (!connection) return queue.length + (now < avoidUntil ? AVOIDED : 0);
  const shared = statement.weight === 'light' && connection.gathers() ? WORTH_SHARING : 0;
  return connection.load(now) - shared + queue.length * QUEUED;
}
