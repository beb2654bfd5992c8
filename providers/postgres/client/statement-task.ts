import type { Call } from '#contract';
import { toOmpError } from '../errors.ts';

export interface Statement {
  readonly name: string;
  readonly text: string;
  /** A search, or a page of large memories: its cost grows with what a user has stored, so few run at once. */
  readonly heavy?: boolean;
  /** Takes less time than a system call: it is sent with others of the same turn rather than on an idle connection. */
  readonly light?: boolean;
}

export type Row = Record<string, unknown>;

/** Counts over the tasks of all connections. */
export interface TaskCounts {
  /** Statements without an answer. */
  pending: number;
  /** Size of their values in bytes. */
  bytes: number;
}

/**
 * One statement from the queue to its answer, in a transaction of its own if it has settings. Times are values of
 * `performance.now()`. A plain record: closures for every statement would double the garbage.
 */
export interface Task {
  readonly statement: Statement;
  readonly values: readonly unknown[];
  /** SQL that runs first in the same transaction; undefined: the statement is its own transaction. */
  readonly settings: string | undefined;
  readonly call: Call;
  readonly counts: TaskCounts;
  readonly resolve: (rows: Row[]) => void;
  readonly reject: (error: unknown) => void;
  /** Called once when neither caller nor server works on the task any more; undefined: not started. */
  end: (() => void) | undefined;
  /** Ends listening for the abort of the call. */
  stopListening: () => void;
  /** Whether the caller has an answer or has aborted: later results are dropped. */
  settled: boolean;
  queuedAt: number;
  /** When the server began to work on it: when everything sent before it was answered. */
  startedAt: number;
  /** Whether it was last sent by its name. */
  named: boolean;
  sentTimes: number;
  /** Whether the server has begun its transaction. */
  begun: boolean;
  /** Whether a cancel request for another task may hit it. */
  cancelExposed: boolean;
}

/**
 * Starts a task unless its call is already aborted. An abort rejects the promise at once.
 */
export function runTask(
  input: Pick<Task, 'statement' | 'values' | 'settings' | 'counts'>,
  call: Call,
  start: (task: Task) => void,
): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const { statement, values, settings, counts } = input;
    const task: Task = {
      statement,
      values,
      settings,
      call,
      counts,
      resolve,
      reject,
      end: undefined,
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
    counts.bytes += sizeOf(values);
    task.stopListening = call.onAbort(() => void isAbandoned(task));
    if (task.settled) return;
    start(task);
  });
}

export function resolveTask(task: Task, rows: Row[]): void {
  if (settle(task)) task.resolve(rows);
}

/** Rejects with an `OmpError`. */
export function rejectTask(task: Task, error: unknown): void {
  if (settle(task)) task.reject(toOmpError(error));
}

/** Rejects and ends a task that is not, or no longer, on its way to the server. */
export function dropTask(task: Task, error: unknown): void {
  rejectTask(task, error);
  task.end?.();
}

function settle(task: Task): boolean {
  if (task.settled) return false;
  task.settled = true;
  task.counts.pending--;
  task.counts.bytes -= sizeOf(task.values);
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
