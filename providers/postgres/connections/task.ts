import type { Call } from '#contract';
import { toOmpError } from '../errors.ts';

export interface Statement {
  readonly name: string;
  readonly text: string;
  /** A search, or a page of large memories: its cost grows with what a user has stored, so few are sent at once. */
  readonly heavy?: boolean;
}

export type Row = Record<string, unknown>;

/** What is asked of all connections together. */
export interface Tally {
  /** Statements without an answer yet. */
  unanswered: number;
  /** Of their values. */
  bytes: number;
}

/**
 * One statement on its way to the server and back, in a transaction of its own with settings where it has some. Times
 * are those of `performance.now()`. A plain record: closures for every statement would double the garbage.
 */
export interface Task {
  readonly statement: Statement;
  readonly values: readonly unknown[];
  /** SQL that comes first in the same transaction; undefined: the statement is its own transaction. */
  readonly settings: string | undefined;
  readonly call: Call;
  readonly tally: Tally;
  readonly resolve: (rows: Row[]) => void;
  readonly reject: (error: unknown) => void;
  /** To be called once when nothing is to be done for it any more, on the server neither; undefined: it was not started. */
  end: (() => void) | undefined;
  /** Listens to the signal. */
  gone: (() => void) | undefined;
  /** Whether the caller has an answer, or has gone: what comes now is for nobody. */
  told: boolean;
  /** Since when it waits for its turn. */
  waiting: number;
  /** Since when the server works on it: all that was sent before it is answered. */
  turn: number;
  /** Whether it was last sent by its name. */
  named: boolean;
  /** How often it was sent. */
  sent: number;
  /** Whether the server has begun its transaction. */
  begun: boolean;
  /** Whether a cancel request that is meant for another one may hit it. */
  exposed: boolean;
}

/**
 * Starts what is asked for unless the caller has gone already. Callers are told as soon as they go: by their own
 * `unlessAborted` where they have one, else here.
 */
export function runTask(
  asked: Pick<Task, 'statement' | 'values' | 'settings' | 'tally'>,
  call: Call,
  start: (task: Task) => void,
): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const { statement, values, settings, tally } = asked;
    const task: Task = {
      statement,
      values,
      settings,
      call,
      tally,
      resolve,
      reject,
      end: undefined,
      gone: undefined,
      told: false,
      waiting: 0,
      turn: 0,
      named: false,
      sent: 0,
      begun: false,
      exposed: false,
    };
    tally.unanswered++;
    tally.bytes += sizeOf(values);
    if (!call.unlessAborted) {
      if (isAbandoned(task)) return;
      task.gone = () => void isAbandoned(task);
      call.signal.addEventListener('abort', task.gone);
    }
    start(task);
  });
}

export function answerTask(task: Task, rows: Row[]): void {
  if (isFirstAnswer(task)) task.resolve(rows);
}

/** Tells the caller as an `OmpError`. */
export function failTask(task: Task, error: unknown): void {
  if (isFirstAnswer(task)) task.reject(toOmpError(error));
}

/** Fails a task that is not, or no longer, on its way to the server. */
export function dropTask(task: Task, error: unknown): void {
  failTask(task, error);
  task.end?.();
}

function isFirstAnswer(task: Task): boolean {
  if (task.told) return false;
  task.told = true;
  task.tally.unanswered--;
  task.tally.bytes -= sizeOf(task.values);
  if (task.gone) task.call.signal.removeEventListener('abort', task.gone);
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

/** Whether nobody waits any more. Dear for a request, whose signal is only made when somebody looks at it. */
export function isAbandoned(task: Task): boolean {
  if (!task.told && task.call.signal.aborted) failTask(task, task.call.signal.reason);
  return task.told;
}
