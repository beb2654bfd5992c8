import type { Call } from '#provider';
import { toOmpError } from '../postgres-errors.ts';

/**
 * What a statement costs. `heavy`: what it reads grows with what a user or the store has, or it reads the contents of many memories, so few
 * run at once, and never on the last of several connections. `small`: the request limits what it reads and writes, and indexes lead there.
 * `light`: takes less time than a system call, so that it is sent with others of the same turn rather than on an idle connection.
 */
export type Weight = 'light' | 'small' | 'heavy';

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly weight: Weight;
}

export type Row = Record<string, unknown>;

/** Counts over the tasks of all connections. */
export interface TaskCounts {
  /** Statements without an answer. */
  pending: number;
  /** Size of their values in bytes. */
  bytes: number;
}

/** One statement, in a transaction of its own if it has settings. */
interface TaskInput {
  readonly statement: Statement;
  readonly values: readonly unknown[];
  /** SQL that runs first in the same transaction; undefined: the statement is its own transaction. */
  readonly settings: string | undefined;
  readonly call: Call;
  readonly counts: TaskCounts;
  readonly resolve: (rows: Row[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One statement from the queue to its answer. Times are values of `performance.now()`.
 */
export interface Task extends TaskInput {
  /** The concurrency limit that counts the task; undefined: not started, or ended. */
  limit: { ended(task: Task): void } | undefined;
  /** Whether it is likely to take long. */
  slow: boolean;
  /** Size of its values, in bytes. */
  readonly bytes: number;
  /** Ends listening for the abort of the call. */
  stopListening: () => void;
  /** Whether the caller has an answer or has aborted: later results are dropped. */
  settled: boolean;
  queuedAt: number;
  /** When the server began to work on it: when everything sent before it was answered. 0: it did not. */
  startedAt: number;
  /** Whether it was last sent by its name. */
  named: boolean;
  sentTimes: number;
  /** Whether the server has begun its transaction. */
  begun: boolean;
  /** Whether a cancel request for another task may hit it. */
  cancelExposed: boolean;
}

/** Counts a task, and rejects it at once when its call aborts. */
export function createTask({ statement, values, settings, call, counts, resolve, reject }: TaskInput): Task {
  const task: Task = {
    statement,
    values,
    settings,
    call,
    counts,
    resolve,
    reject,
    limit: undefined,
    slow: false,
    bytes: sizeOf(values),
    stopListening: () => {},
    settled: false,
    queuedAt: 0,
    startedAt: 0,
    named: false,
    sentTimes: 0,
    begun: false,
    cancelExposed: false,
  };
  counts.pending++;
  counts.bytes += task.bytes;
  task.stopListening = call.onAbort(() => void isAbandoned(task));
  return task;
}

/** Rejects with an `OmpError`. */
export function rejectTask(task: Task, error: unknown): void {
  if (settle(task)) task.reject(toOmpError(error));
}

/** Call it once neither caller nor server works on the task any more. */
export function endTask(task: Task): void {
  const { limit } = task;
  task.limit = undefined;
  limit?.ended(task);
}

/** Rejects and ends a task that is not, or no longer, on its way to the server. */
export function dropTask(task: Task, error: unknown): void {
  rejectTask(task, error);
  endTask(task);
}

export function settle(task: Task): boolean {
  if (task.settled) return false;
  task.settled = true;
  task.counts.pending--;
  task.counts.bytes -= task.bytes;
  task.stopListening();
  return true;
}

function sizeOf(values: readonly unknown[]): number {
  let bytes = 0;
  for (const value of values) {
    if (typeof value === 'string') bytes += value.length;
    else if (value instanceof Uint8Array) bytes += value.length;
    else if (Array.isArray(value)) bytes += sizeOf(value);
  }
  return bytes;
}

/** Whether the caller has its answer or has aborted. */
export function isAbandoned(task: Task): boolean {
  if (!task.settled && task.call.aborted) rejectTask(task, task.call.signal.reason);
  return task.settled;
}
