import { Socket } from 'node:net';
import pg from 'pg';
import type { OmpError } from '#provider';
import { isCancelled, lostConnection, restarted, stuck, tooLong } from '../postgres-errors.ts';
import { type Answered, PreparedStatements, requestCancel } from './pg-internals.ts';
import { dropTask, endTask, isAbandoned, type Row, rejectTask, settle, type Task } from './task.ts';

/** Whether the task must have its connection for itself. */
const isExclusive = ({ settings }: Task, named: boolean): boolean => !named || settings !== undefined;

/** Most statements end by themselves in this time, and a cancel request needs a connection of its own. */
const CANCEL_AFTER_MS = 100;
/** A server that has not cancelled a statement in this time does not answer at all. */
const CANCEL_ANSWER_MS = 3_000;
/** An engine that cannot cancel is restarted after this time, which is about what the restart takes. */
const INTERRUPT_AFTER_MS = 2_000;
/** How long to wait for the server when a connection is closed. */
const END_MS = 1_000;
/** Load of a heavy statement, compared with another one. */
const HEAVY_LOAD = 16;
/** More than the load of any number of statements: whatever is sent behind a long one waits for it. */
const BLOCKED_LOAD = 1_000_000;

/** What the engine of the data folder offers instead of cancelling. */
interface InterruptibleEngine {
  /** Resolves when it accepts connections. */
  ready(): Promise<void>;
  /** Restarts it. */
  interrupt(): void;
}

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

export interface ConnectionEvents {
  /** A task was answered: there may be room. */
  freed(): void;
  /** A task failed. `preparationLost`: possibly only because the statement that prepared its name was cancelled. */
  failed(task: Task, error: unknown, preparationLost: boolean): void;
  /** The connection takes nothing more. Tasks already sent are still answered. */
  draining(): void;
  closed(): void;
}

/** Rejects with the error of `pg` if the connection cannot be opened. */
export async function openConnection(
  options: ConnectionOptions,
  events: ConnectionEvents,
): Promise<PipelinedConnection> {
  await options.engine?.ready();
  const socket = new Socket();
  const client = new pg.Client({
    ...options.config,
    stream: () => socket,
    pipeline: true,
    keepAlive: true,
  } as pg.ClientConfig);
  let lost: unknown;
  let onLoss = (cause: unknown) => {
    lost = cause;
  };
  // Without a listener, losing an idle connection would end the process.
  client.on('error', (error) => onLoss(error));
  client.on('end', () => onLoss(new Error('the connection has ended')));
  try {
    await client.connect();
    if (lost) throw lost;
  } catch (error) {
    socket.destroy();
    throw error;
  }
  const connection = new PipelinedConnection(client, socket, options, events);
  onLoss = (cause) => connection.lose(lostConnection(cause));
  return connection;
}

/** A request to cancel the head. */
interface CancelRequest {
  readonly since: number;
  giveUp(): void;
  /** Whether its target has ended by it. */
  hit: boolean;
  /** Whether the server has handled it. */
  done: boolean;
}

/**
 * One connection on which statements are pipelined: the next is sent before the last is answered. The server works on the
 * oldest, the head. Only the head is ever cancelled: when its caller has aborted and it has run for a while, or when it
 * has exceeded its time. The tasks behind it stay.
 */
export class PipelinedConnection {
  readonly #client: pg.Client;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #events: ConnectionEvents;
  readonly #prepared: PreparedStatements;
  readonly #sent: Task[] = [];
  #heavy = 0;
  #slow = 0;
  /** Nothing is sent until the request is handled and has hit. */
  #cancel: CancelRequest | undefined;
  #draining = false;
  #closed = false;
  #ending: Promise<void> | undefined;

  constructor(client: pg.Client, socket: Socket, options: ConnectionOptions, events: ConnectionEvents) {
    this.#client = client;
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#prepared = new PreparedStatements(client);
  }

  /** How many tasks would run before another one; a long one counts as many. */
  load(now: number): number {
    const slow = this.#slow > 0 || this.#runningTime(now) > CANCEL_AFTER_MS;
    const blocked = slow || this.#cancel !== undefined || this.#isTaken();
    return this.#sent.length + this.#heavy * HEAVY_LOAD + (blocked ? BLOCKED_LOAD : 0);
  }

  /** Whether a statement sent now shares the system call of others (`writeTogether`). */
  gathers(): boolean {
    return this.#socket.writableCorked > 0;
  }

  /** `named`: whether the task is sent by its name. */
  hasRoom(task: Task, named: boolean): boolean {
    // What is sent behind a slow statement waits for it, whichever connection is free by then.
    if (this.#cancel !== undefined || this.#slow > 0) return false;
    return this.#sent.length === 0 || !(isExclusive(task, named) || this.#isTaken() || this.#restartIsNear());
  }

  send(task: Task, named: boolean): void {
    writeTogether(this.#socket);
    task.named = named;
    task.sentTimes++;
    if (task.statement.weight === 'heavy') this.#heavy++;
    if (task.slow) this.#slow++;
    task.cancelExposed = false;
    if (this.#sent.push(task) === 1) task.startedAt = performance.now();
    if (task.settings === undefined) {
      this.#query(task, (error, rows) => this.#answered(task, error, rows));
    } else {
      this.#sendTransaction(task, task.settings);
    }
  }

  /** Cancels or rejects tasks past their deadline. Call it every few milliseconds while there is a task. */
  checkDeadlines(now: number): void {
    const [head] = this.#sent;
    if (this.#cancel) this.#checkCancel(this.#cancel, now);
    else if (head) this.#checkHead(head, now);
    rejectLate(this.#sent, now - this.#options.acquire_timeout_ms);
  }

  /** Closes the connection after everything sent was answered. */
  end(): Promise<void> {
    this.#ending ??= endClient(this.#client, () => this.#sent.length === 0 && this.#socket.destroy());
    return this.#ending;
  }

  /** Closes the connection and rejects everything sent. */
  lose(error: OmpError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.destroy();
    this.#drain();
    // The server may have run them, so none is sent again.
    for (const task of this.#sent.splice(0)) dropTask(task, error);
    this.#events.closed();
  }

  #drain(): void {
    this.#cancel?.giveUp();
    this.#cancel = undefined;
    if (this.#draining) return;
    this.#draining = true;
    void this.end();
    this.#events.draining();
  }

  /** How long the head has run. */
  #runningTime(now: number): number {
    return this.#sent[0] ? now - this.#sent[0].startedAt : 0;
  }

  /** Whether a task has the connection for itself. */
  #isTaken(): boolean {
    const [head] = this.#sent;
    return head !== undefined && isExclusive(head, head.named);
  }

  /** Tasks that are not sent yet survive a restart of the engine. */
  #restartIsNear(): boolean {
    return this.#options.engine !== undefined && this.#runningTime(performance.now()) > CANCEL_AFTER_MS;
  }

  #query(task: Task, answered: (error: unknown, rows: Row[]) => void): void {
    const values = task.values as unknown[];
    let early: unknown;
    let sending = true;
    const callback: Answered = (error, result) => {
      // `pg` reports a value that it cannot serialize at once, and again when the statement's answer is due.
      if (sending) early = error;
      else answered(early ?? error ?? undefined, result?.rows ?? NO_ROWS);
    };
    if (task.named) this.#client.query(this.#prepared.query(task.statement, values, callback));
    else void this.#client.query<Row>(task.statement.text, values, callback);
    sending = false;
  }

  /** Sends all of the transaction in one go. */
  #sendTransaction(task: Task, settings: string): void {
    // Later errors only say that the transaction is aborted.
    let firstError: unknown;
    let rows: Row[] = [];
    const note = (error: unknown) => {
      firstError ??= error ?? undefined;
    };
    task.begun = false;
    void this.#client.query('begin', (error) => {
      note(error);
      task.begun = !error;
    });
    void this.#client.query(settings, note);
    this.#query(task, (error, result) => {
      note(error);
      rows = result;
    });
    void this.#client.query('commit', (error) => {
      note(error);
      // A transaction that could not commit may still be open. Closing ends it.
      if (error && !this.#closed) this.#drain();
      this.#answered(task, firstError, rows);
    });
  }

  /** The head was answered; `error`: the first one. */
  #answered(task: Task, error: unknown, rows: Row[]): void {
    if (this.#closed) return;
    this.#sent.shift();
    if (task.statement.weight === 'heavy') this.#heavy--;
    if (task.slow) this.#slow--;
    if (this.#sent[0]) this.#sent[0].startedAt = performance.now();
    this.#settleCancel(task, error !== undefined && isCancelled(error));
    if (error !== undefined) this.#events.failed(task, error, this.#draining);
    else {
      if (task.named) this.#prepared.remember(task.statement);
      if (settle(task)) task.resolve(rows);
      endTask(task);
    }
    this.#events.freed();
  }

  /** What the answer of the head says about the cancel request. `hit`: whether the head was cancelled. */
  #settleCancel({ statement: { name } }: Task, hit: boolean): void {
    if (this.#cancel && !this.#cancel.hit) {
      this.#cancel.hit = hit;
      // The request is too late for its target and may hit another statement at any time.
      if (!hit) this.#drain();
    }
    // Tasks behind it rely on a preparation that may have been cancelled, and `pg` would lose track of who prepares it again.
    if (hit && !this.#prepared.has(name) && this.#sent.some((other) => other.named && other.statement.name === name))
      this.#drain();
    if (this.#cancel?.hit && this.#cancel.done) this.#cancel = undefined;
  }

  #cancelHead(now: number): void {
    const request: CancelRequest = { since: now, giveUp() {}, hit: false, done: false };
    const giveUp = requestCancel(this.#client, this.#socket.remoteAddress, () => {
      request.done = true;
      if (this.#cancel !== request || !request.hit) return;
      this.#cancel = undefined;
      this.#events.freed();
    });
    if (!giveUp) return;
    request.giveUp = giveUp;
    this.#cancel = request;
    for (const task of this.#sent) task.cancelExposed = task !== this.#sent[0];
  }

  #checkHead(head: Task, now: number): void {
    const { query_timeout_ms, cancellable = true, engine } = this.#options;
    const running = this.#runningTime(now);
    const exceeded = running - query_timeout_ms;
    if (exceeded > 0) rejectTask(head, tooLong());
    // If `begin` were cancelled, the rest would run without a transaction.
    const safe = cancellable && (head.settings === undefined || head.begun);
    if (safe && running > CANCEL_AFTER_MS && isAbandoned(head)) this.#cancelHead(now);
    if (engine && running > INTERRUPT_AFTER_MS && isAbandoned(head)) {
      engine.interrupt();
      this.lose(restarted());
    } else if (!this.#cancel && exceeded > CANCEL_ANSWER_MS) {
      this.lose(lostConnection(new Error('the database does not answer any more')));
    }
  }

  #checkCancel({ since, hit }: CancelRequest, now: number): void {
    if (now - since <= CANCEL_ANSWER_MS) return;
    if (hit) this.#drain();
    else this.lose(lostConnection(new Error('the database does not answer a cancel request')));
  }
}

const NO_ROWS: Row[] = [];

/** Sends the statements of one event loop turn in one system call. Without it a get takes a third more processor time. */
function writeTogether(socket: Socket): void {
  if (socket.writableCorked > 0) return;
  socket.cork();
  setImmediate(() => socket.uncork());
}

/** Calls `giveUp` at intervals until the server has closed the connection. */
async function endClient(client: pg.Client, giveUp: () => void): Promise<void> {
  const timer = setInterval(giveUp, END_MS).unref();
  await client.end();
  clearInterval(timer);
}

/** Rejects tasks behind the head that were queued before `since`. */
function rejectLate([head, ...behind]: readonly Task[], since: number): void {
  if (!head || head.queuedAt >= since) return;
  for (const task of behind) {
    if (task.queuedAt >= since) break;
    rejectTask(task, stuck());
  }
}
