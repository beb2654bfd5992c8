import { Socket } from 'node:net';
import pg from 'pg';
import type { OmpError } from '#contract';
import { isCancelled, lostConnection, restarted, tooBusy, tooLong } from '../errors.ts';
import { requestCancel } from './cancel-request.ts';
import { type Columns, PreparedQuery, trackPreparedStatements } from './prepared-statements.ts';
import { dropTask, isAbandoned, type Row, rejectTask, resolveTask, type Task } from './statement-task.ts';

/** Most statements end by themselves in this time, and a cancel request needs a connection of its own. */
const CANCEL_AFTER_MS = 100;
/** A server that has not cancelled a statement in this time does not answer at all. */
const CANCEL_ANSWER_MS = 3_000;
/** An engine that cannot cancel is restarted after this time, which is about what the restart takes. */
const INTERRUPT_AFTER_MS = 2_000;
/** How long to wait for the server when a connection is closed. */
const END_MS = 1_000;
/** Load of a search, compared with another statement. */
const SEARCH_LOAD = 16;
/** More than the load of any number of statements: whatever is sent behind a long one waits for it. */
const BLOCKED_LOAD = 1_000_000;

/** What the engine of the data folder offers instead of cancelling. */
export interface InterruptibleEngine {
  /** Resolves when it accepts connections. */
  ready(): Promise<void>;
  /** Restarts it. */
  interrupt(): void;
}

export interface ConnectionLimits {
  readonly acquire_timeout_ms: number;
  readonly query_timeout_ms: number;
  /** Whether the server supports cancel requests. */
  readonly cancellable: boolean;
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

/** Whether a task is sent by its name, and whether it needs the connection for itself. */
export interface SendMode {
  readonly named: boolean;
  readonly exclusive: boolean;
}

export interface PipelinedConnection {
  /** How many tasks would run before another one; a long one counts as many. */
  load(now: number): number;
  /** Whether statements sent now share the system call of others (`writeTogether`). */
  gathers(): boolean;
  hasRoom(mode: SendMode): boolean;
  send(task: Task, mode: SendMode): void;
  /** Cancels or rejects tasks past their deadline. Call it every few milliseconds while there is a task. */
  checkDeadlines(now: number): void;
  /** Closes the connection after everything sent was answered. */
  end(): Promise<void>;
}

/** Sends the statements of one event loop turn in one system call, which is most of the cost of a small statement. */
function writeTogether(socket: Socket): void {
  if (socket.writableCorked > 0) return;
  socket.cork();
  setImmediate(() => socket.uncork());
}

/** Rejects with the error of `pg` if the connection cannot be opened. */
export async function openConnection(
  config: pg.ClientConfig,
  limits: ConnectionLimits,
  events: ConnectionEvents,
): Promise<PipelinedConnection> {
  await limits.engine?.ready();
  const socket = new Socket();
  const client = new pg.Client({ ...config, stream: () => socket, pipeline: true, keepAlive: true } as pg.ClientConfig);
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
  const { connection, lose } = createConnection({ client, socket }, limits, events);
  onLoss = (cause) => lose(lostConnection(cause));
  return connection;
}

/**
 * One connection on which statements are pipelined: the next is sent before the last is answered. The server works on the
 * oldest, the head. Only the head is ever cancelled: when its caller has aborted and it has run for a while, or when it
 * has exceeded its time. The tasks behind it stay.
 */
function createConnection(
  { client, socket }: { client: pg.Client; socket: Socket },
  limits: ConnectionLimits,
  events: ConnectionEvents,
) {
  const sent: Task[] = [];
  let searches = 0;
  const prepared = trackPreparedStatements(client);
  /** Whether the task sent last needs the connection for itself. */
  let exclusive = false;
  /** How long the head has run. */
  const runningTime = (now: number) => (sent[0] ? now - sent[0].startedAt : 0);
  /** The cancel request in progress, and whether its target has ended by it. Until then nothing is sent. */
  let cancel: { readonly since: number; readonly giveUp: () => void; hit: boolean; done: boolean } | undefined;
  let draining = false;
  let closed = false;
  let ending: Promise<void> | undefined;

  const end = () => endClient(client, () => sent.length === 0 && socket.destroy());
  const drain = () => {
    cancel?.giveUp();
    cancel = undefined;
    if (draining) return;
    draining = true;
    ending ??= end();
    events.draining();
  };
  const lose = (error: OmpError) => {
    if (closed) return;
    closed = true;
    socket.destroy();
    drain();
    // The server may have run them, so none is sent again.
    for (const task of sent.splice(0)) dropTask(task, error);
    events.closed();
  };

  const answered = (task: Task, error: unknown, rows: Row[], transactionOpen: boolean) => {
    if (closed) return;
    sent.shift();
    if (task.statement.heavy) searches--;
    exclusive = false;
    if (sent[0]) sent[0].startedAt = performance.now();
    const { name } = task.statement;
    const hit = isCancelled(error);
    // Closing ends the transaction too.
    if (transactionOpen) drain();
    if (cancel && !cancel.hit) {
      cancel.hit = hit;
      // The request is too late for its target and may hit another statement at any time.
      if (!hit) drain();
    }
    // Tasks behind it rely on a preparation that may have been cancelled, and `pg` would lose track of who prepares it again.
    if (hit && !prepared.has(name) && sent.some((other) => other.named && other.statement.name === name)) drain();
    if (cancel?.hit && cancel.done) cancel = undefined;
    if (error !== undefined) events.failed(task, error, draining);
    else {
      if (task.named) prepared.add(task.statement);
      resolveTask(task, rows);
      task.end?.();
    }
    events.freed();
  };

  const cancelHead = (now: number) => {
    const request = { since: now, giveUp: () => {}, hit: false, done: false };
    const giveUp = requestCancel(client, socket.remoteAddress, () => {
      request.done = true;
      if (cancel !== request || !request.hit) return;
      cancel = undefined;
      events.freed();
    });
    if (!giveUp) return;
    cancel = Object.assign(request, { giveUp });
    for (const task of sent) task.cancelExposed = task !== sent[0];
  };
  const checkHead = (head: Task, now: number) => {
    const running = runningTime(now);
    const exceeded = running - limits.query_timeout_ms;
    if (exceeded > 0) rejectTask(head, tooLong());
    // If `begin` were cancelled, the rest would run without a transaction.
    const safe = limits.cancellable && (head.settings === undefined || head.begun);
    if (safe && running > CANCEL_AFTER_MS && isAbandoned(head)) cancelHead(now);
    if (limits.engine && running > INTERRUPT_AFTER_MS && isAbandoned(head)) {
      limits.engine.interrupt();
      return lose(restarted());
    }
    if (!cancel && exceeded > CANCEL_ANSWER_MS)
      lose(lostConnection(new Error('the database does not answer any more')));
  };
  const checkDeadlines = (now: number) => {
    if (!cancel) {
      if (sent[0]) checkHead(sent[0], now);
    } else if (now - cancel.since > CANCEL_ANSWER_MS) {
      if (cancel.hit) drain();
      else lose(lostConnection(new Error('the database does not answer a cancel request')));
    }
    rejectLate(sent, now - limits.acquire_timeout_ms);
  };

  /** Tasks that are not sent yet survive a restart of the engine. */
  const restartIsNear = () => limits.engine !== undefined && runningTime(performance.now()) > CANCEL_AFTER_MS;

  const isBlocked = (now: number) => cancel !== undefined || exclusive || runningTime(now) > CANCEL_AFTER_MS;

  const connection: PipelinedConnection = {
    load: (now) => sent.length + searches * SEARCH_LOAD + (isBlocked(now) ? BLOCKED_LOAD : 0),
    gathers: () => socket.writableCorked > 0,
    hasRoom: (mode) => cancel === undefined && (sent.length === 0 || !(mode.exclusive || exclusive || restartIsNear())),
    send(task, mode) {
      writeTogether(socket);
      exclusive = mode.exclusive;
      task.named = mode.named;
      if (mode.named) prepared.use(task.statement);
      task.sentTimes++;
      if (task.statement.heavy) searches++;
      task.cancelExposed = false;
      if (sent.push(task) === 1) task.startedAt = performance.now();
      sendTask(client, prepared.columns, task, answered);
    },
    checkDeadlines,
    end: () => (ending ??= end()),
  };
  return { connection, lose };
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
    rejectTask(task, tooBusy());
  }
}

/**
 * Queues everything that the task needs in one go. `answered` is called once, with the first error. `transactionOpen`: the
 * commit failed, so the transaction may still be open.
 */
function sendTask(
  client: pg.Client,
  columns: Map<string, Columns>,
  task: Task,
  answered: (task: Task, error: unknown, rows: Row[], transactionOpen: boolean) => void,
): void {
  if (task.settings === undefined) {
    return void sendStatement(client, columns, task, (error, rows) => answered(task, error, rows, false));
  }
  // Later errors only say that the transaction is aborted.
  let firstError: unknown;
  let rows: Row[] = [];
  const note = (error: unknown) => {
    firstError ??= error ?? undefined;
  };
  task.begun = false;
  void client.query('begin', (error) => {
    note(error);
    task.begun = !error;
  });
  void client.query(task.settings, note);
  sendStatement(client, columns, task, (error, result) => {
    note(error);
    rows = result;
  });
  void client.query('commit', (error) => {
    note(error);
    answered(task, firstError, rows, Boolean(error));
  });
}

const NO_ROWS: Row[] = [];

function sendStatement(
  client: pg.Client,
  columns: Map<string, Columns>,
  task: Task,
  answered: (error: unknown, rows: Row[]) => void,
): void {
  const values = task.values as unknown[];
  let early: unknown;
  let sending = true;
  const callback = (error: Error | null | undefined, result: { readonly rows: Row[] } | undefined) => {
    // `pg` reports a value that it cannot serialize at once, and again when the statement's answer is due.
    if (sending) early = error;
    else answered(early ?? error ?? undefined, result?.rows ?? NO_ROWS);
  };
  if (task.named) client.query(new PreparedQuery(task.statement, values, columns, callback));
  else void client.query<Row>(task.statement.text, values, callback);
  sending = false;
}
