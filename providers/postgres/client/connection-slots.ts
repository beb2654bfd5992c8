import { tooBusy, unreachable } from '../errors.ts';
import type { ConnectionEvents, PipelinedConnection, SendMode } from './pipelined-connection.ts';
import { dropTask, isAbandoned, type Task } from './statement-task.ts';

/** A slot whose connection failed to open is avoided for this time while others work. */
const AVOID_MS = 1_000;
/** More than the load of any connection that works. */
const AVOIDED = Number.MAX_SAFE_INTEGER / 2;
/** How many statements a light one waits behind to share their system call. */
const WORTH_SHARING = 8;
/** A queued task weighs more than many tasks already sent. */
const QUEUED = 1_000;

export interface ConnectionSlots {
  /** Sends the task on the least loaded connection, as soon as that has room. `queuedAt`: now, unless given. */
  assign(task: Task, queuedAt?: number): void;
  /** Rejects tasks past their deadline. Returns false if nothing is in flight. */
  checkDeadlines(now: number): boolean;
  /** Open connections, and how many of them have work. */
  stats(): { readonly open: number; readonly busy: number };
  /** Call it when nothing is in flight. */
  end(): Promise<void>;
}

export interface ConnectionSlotsOptions {
  readonly count: number;
  readonly open: (events: Omit<ConnectionEvents, 'failed'>) => Promise<PipelinedConnection>;
  /** How to send a task now. */
  readonly modeOf: (task: Task) => SendMode;
  readonly acquire_timeout_ms: number;
}

interface Slot {
  opening: Promise<void> | undefined;
  /** Set once it is open. */
  connection: PipelinedConnection | undefined;
  avoidUntil: number;
  /** Tasks not sent yet, oldest first. */
  readonly queue: Task[];
}

/**
 * A fixed number of slots for connections. The first task of a slot opens its connection, and opens it again after a loss.
 * If there are several slots, the last one takes no searches: other statements then never wait for them.
 */
export function createConnectionSlots(options: ConnectionSlotsOptions): ConnectionSlots {
  const { count, open, modeOf, acquire_timeout_ms } = options;
  const slots: Slot[] = Array.from({ length: count }, () => ({
    opening: undefined,
    connection: undefined,
    avoidUntil: 0,
    queue: [],
  }));
  const forSearches = slots.slice(0, Math.max(1, count - 1));
  const mayServe = (slot: Slot, { statement }: Task) => !statement.heavy || forSearches.includes(slot);
  /** Includes those that only finish what was sent. */
  const connections = new Set<PipelinedConnection>();

  const openSlot = async (slot: Slot) => {
    try {
      const connection = await open({
        freed: () => fill(slot),
        draining() {
          slot.connection = undefined;
          fill(slot);
        },
        closed: () => connections.delete(connection),
      });
      slot.connection = connection;
      connections.add(connection);
    } catch (error) {
      slot.avoidUntil = performance.now() + AVOID_MS;
      const othersWork = slots.some((other) => other.connection !== undefined);
      for (const task of slot.queue.splice(0)) {
        if (othersWork) assign(task);
        else dropTask(task, unreachable(error));
      }
    }
    slot.opening = undefined;
    fill(slot);
  };

  /** Sends as much as there is room for. An idle connection takes tasks queued for another one. */
  const fill = (slot: Slot): void => {
    for (;;) {
      const helps = slot.queue.length === 0 && slot.connection?.load(0) === 0;
      const queue = helps ? slots.find(({ queue: [first] }) => first && mayServe(slot, first))?.queue : slot.queue;
      const task = queue?.[0];
      if (!queue || !task) return;
      if (!slot.connection) {
        slot.opening ??= openSlot(slot);
        return;
      }
      const mode = modeOf(task);
      // The call may have been aborted while the task was queued.
      const abandoned = isAbandoned(task);
      if (!abandoned) {
        if (!slot.connection.hasRoom(mode)) return;
        slot.connection.send(task, mode);
      }
      queue.shift();
      if (abandoned) task.end?.();
    }
  };
  const weight = ({ connection, queue, avoidUntil }: Slot, { statement }: Task, now: number) => {
    if (!connection) return queue.length + (now < avoidUntil ? AVOIDED : 0);
    const shared = statement.light && connection.gathers() ? WORTH_SHARING : 0;
    return connection.load(now) - shared + queue.length * QUEUED;
  };
  const assign = (task: Task, queuedAt?: number) => {
    const now = performance.now();
    task.queuedAt = queuedAt ?? now;
    const able = task.statement.heavy ? forSearches : slots;
    const slot = able.reduce((least, other) => (weight(other, task, now) < weight(least, task, now) ? other : least));
    const { connection, queue } = slot;
    const mode = modeOf(task);
    if (queue.length === 0 && connection?.hasRoom(mode)) return connection.send(task, mode);
    queue.push(task);
    fill(slot);
  };

  return {
    assign,
    checkDeadlines(now) {
      for (const connection of connections) connection.checkDeadlines(now);
      for (const { queue, connection } of slots) {
        for (let task = queue[0]; task; task = queue[0]) {
          if (!task.settled && now - task.queuedAt <= acquire_timeout_ms) break;
          queue.shift();
          dropTask(task, connection ? tooBusy() : unreachable(new Error('no connection in time')));
        }
      }
      return [...connections].some(({ load }) => load(now) > 0) || slots.some(({ queue }) => queue.length > 0);
    },
    stats() {
      const open = [...connections];
      return { open: open.length, busy: open.filter(({ load }) => load(0) > 0).length };
    },
    async end() {
      await Promise.all(slots.map(({ opening }) => opening));
      await Promise.all([...connections].map((connection) => connection.end()));
    },
  };
}
