import { Socket } from 'node:net';
import pg from 'pg';
import type { OmpError } from '#contract';
import type { Engine } from '../embedded/engine.ts';
import { interrupted, isCancelled, lostConnection, tooBusy, tooLong } from '../errors.ts';
import { requestCancel } from './cancel-request.ts';
import { createPrepared } from './prepared.ts';
import { send } from './send.ts';
import { answerTask, dropTask, failTask, isAbandoned, type Row, type Task } from './task.ts';

/** Most statements end by themselves in this time, and a cancel request is a connection of its own. */
const CANCEL_AFTER_MS = 100;
/** A server that has not cancelled a statement in this time answers nothing at all. */
const CANCEL_ANSWER_MS = 3_000;
/** An engine that cannot cancel is interrupted after this time: about what it takes to start it again. */
const INTERRUPT_AFTER_MS = 2_000;
/** Longest time a farewell may take. */
const END_MS = 1_000;
/** What a search weighs beside other statements. */
const SEARCH = 16;
/** Outweighs any number of statements: what comes behind a long one waits for it. */
const HEAVY = 1_000_000;

export interface ConnectionLimits {
  readonly acquire_timeout_ms: number;
  readonly query_timeout_ms: number;
  /** Whether the server cancels statements when asked. */
  readonly cancellable: boolean;
  /** What is interrupted instead. */
  readonly engine?: Pick<Engine, 'ready' | 'interrupt'> | undefined;
}

export interface ConnectionEvents {
  /** A task was answered: there may be room. */
  freed(): void;
  /** A task failed. `shaken`: perhaps only because what it relies on was prepared by one that was cancelled. */
  failed(task: Task, error: unknown, shaken: boolean): void;
  /** Nothing may be sent any more. What was sent is answered yet, or told that it is lost. */
  left(): void;
  closed(): void;
}

/** How a task is sent: by name or not, and whether it needs the connection for itself. */
export interface Manner {
  readonly named: boolean;
  readonly alone: boolean;
}

export interface Connection {
  /** How many tasks would come before another one; what takes long counts as many. */
  load(now: number): number;
  /** Whether there is room for a task of this manner. */
  mayTake(manner: Manner): boolean;
  send(task: Task, manner: Manner): void;
  /** Looks at the deadlines. To be called every few milliseconds while there is a task. */
  look(now: number): void;
  /** Lets what was sent be answered, then says goodbye. */
  end(): Promise<void>;
}

/** Statements of one turn of the event loop leave in one system call, which else is the larger part of a small one's cost. */
function writeTogether(socket: Socket): void {
  if (socket.writableCorked > 0) return;
  socket.cork();
  setImmediate(() => socket.uncork());
}

/** Rejects with what `pg` says when the connection cannot be opened. */
export async function openConnection(
  config: pg.ClientConfig,
  limits: ConnectionLimits,
  events: ConnectionEvents,
): Promise<Connection> {
  await limits.engine?.ready();
  const socket = new Socket();
  const client = new pg.Client({ ...config, stream: () => socket, pipeline: true, keepAlive: true } as pg.ClientConfig);
  let lost: unknown;
  let onLoss = (cause: unknown) => {
    lost = cause;
  };
  // Without a listener a connection lost while idle would end the process.
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
 * One connection on which tasks are pipelined: the next is sent before the last is answered. The server works on the
 * oldest, the head. Only the head is ever cancelled, and only when it has run for a while and nobody waits for it any
 * more, or beyond its time. The others stay where they are.
 */
function createConnection(
  { client, socket }: { client: pg.Client; socket: Socket },
  limits: ConnectionLimits,
  events: ConnectionEvents,
) {
  const sent: Task[] = [];
  let searches = 0;
  const prepared = createPrepared(client);
  /** Whether what was sent last wants no other beside it. */
  let taken = false;
  /** The cancel request under way, and whether the head of then has ended by it. Meanwhile nothing else is sent. */
  let cancel: { readonly since: number; readonly giveUp: () => void; hit: boolean; done: boolean } | undefined;
  let left = false;
  let closed = false;
  let ending: Promise<void> | undefined;

  const end = () => endClient(client, () => sent.length === 0 && socket.destroy());
  const leave = () => {
    cancel?.giveUp();
    cancel = undefined;
    if (left) return;
    left = true;
    ending ??= end();
    events.left();
  };
  const lose = (error: OmpError) => {
    if (closed) return;
    closed = true;
    socket.destroy();
    leave();
    // Whether they have acted is not known: none is sent again.
    for (const task of sent.splice(0)) dropTask(task, error);
    events.closed();
  };

  const answered = (task: Task, error: unknown, rows: Row[], open: boolean) => {
    if (closed) return;
    sent.shift();
    if (task.statement.heavy) searches--;
    taken = false;
    if (sent[0]) sent[0].turn = performance.now();
    const { name } = task.statement;
    const hit = isCancelled(error);
    // Closing ends the transaction too.
    if (open) leave();
    if (cancel && !cancel.hit) {
      cancel.hit = hit;
      // It comes too late for the head, and may at any time hit another one.
      if (!hit) leave();
    }
    // Those behind rely on a preparation that perhaps was cancelled, and `pg` would lose track of who prepares anew.
    if (hit && !prepared.has(name) && sent.some((other) => other.named && other.statement.name === name)) leave();
    if (cancel?.hit && cancel.done) cancel = undefined;
    if (error !== undefined) events.failed(task, error, left);
    else {
      if (task.named) prepared.add(task.statement);
      answerTask(task, rows);
      task.end?.();
    }
    events.freed();
  };

  const cancelHead = (now: number) => {
    const mine = { since: now, giveUp: () => {}, hit: false, done: false };
    const giveUp = requestCancel(client, socket.remoteAddress, () => {
      mine.done = true;
      if (cancel !== mine || !mine.hit) return;
      cancel = undefined;
      events.freed();
    });
    if (!giveUp) return;
    cancel = Object.assign(mine, { giveUp });
    for (const task of sent) task.exposed = task !== sent[0];
  };
  const lookAtHead = (head: Task, now: number) => {
    const running = now - head.turn;
    const beyond = running - limits.query_timeout_ms;
    if (beyond > 0) failTask(head, tooLong());
    // Were `begin` cancelled, the rest would act without a transaction.
    const safe = limits.cancellable && (head.settings === undefined || head.begun);
    if (safe && running > CANCEL_AFTER_MS && isAbandoned(head)) cancelHead(now);
    if (limits.engine && running > INTERRUPT_AFTER_MS && isAbandoned(head)) {
      limits.engine.interrupt();
      return lose(interrupted());
    }
    if (!cancel && beyond > CANCEL_ANSWER_MS) lose(lostConnection(new Error('the database does not answer any more')));
  };
  const look = (now: number) => {
    if (!cancel) {
      if (sent[0]) lookAtHead(sent[0], now);
    } else if (now - cancel.since > CANCEL_ANSWER_MS) {
      if (cancel.hit) leave();
      else lose(lostConnection(new Error('the database does not answer a cancel request')));
    }
    failLate(sent, now - limits.acquire_timeout_ms);
  };

  /** What is not sent yet is not lost with the connection. */
  const mayBeInterrupted = () =>
    limits.engine !== undefined && sent[0] !== undefined && performance.now() - sent[0].turn > CANCEL_AFTER_MS;

  const connection: Connection = {
    load(now) {
      const [head] = sent;
      const long = cancel !== undefined || (head !== undefined && (taken || now - head.turn > CANCEL_AFTER_MS));
      return sent.length + searches * SEARCH + (long ? HEAVY : 0);
    },
    mayTake: ({ alone }) => cancel === undefined && (sent.length === 0 || !(alone || taken || mayBeInterrupted())),
    send(task, { named, alone }) {
      writeTogether(socket);
      taken = alone;
      task.named = named;
      if (named) prepared.use(task.statement);
      task.sent++;
      if (task.statement.heavy) searches++;
      task.exposed = false;
      if (sent.push(task) === 1) task.turn = performance.now();
      send(client, task, answered);
    },
    look,
    end: () => (ending ??= end()),
  };
  return { connection, lose };
}

/** `giveUp` is called now and then for as long as the goodbye is not answered. */
async function endClient(client: pg.Client, giveUp: () => void): Promise<void> {
  const timer = setInterval(giveUp, END_MS).unref();
  await client.end();
  clearInterval(timer);
}

/** Fails what has waited since before this time behind the head. */
function failLate([head, ...behind]: readonly Task[], since: number): void {
  if (!head || head.waiting >= since) return;
  for (const task of behind) {
    if (task.waiting >= since) break;
    failTask(task, tooBusy());
  }
}
