import { tooBusy, unreachable } from '../errors.ts';
import type { Connection, ConnectionEvents, Manner } from './connection.ts';
import { dropTask, isAbandoned, type Task } from './task.ts';

/** While others work, a connection that could not be opened is left alone for so long. */
const REST_MS = 1_000;
/** More than the load of any connection that works. */
const RESTING = Number.MAX_SAFE_INTEGER / 2;
/** A task that waits for another one to end weighs more than many that are under way. */
const QUEUED = 1_000;

export interface Slots {
  /** Sends the task where there is least to do, as soon as there is room. It has waited since then. */
  place(task: Task, since?: number): void;
  /** Looks at the deadlines; false when nothing is under way. */
  look(now: number): boolean;
  /** Connections that are open at this moment, and those of them that have something to do. */
  stats(): { readonly open: number; readonly busy: number };
  /** To be called when nothing is under way. */
  end(): Promise<void>;
}

export interface SlotsOptions {
  readonly count: number;
  readonly open: (events: Omit<ConnectionEvents, 'failed'>) => Promise<Connection>;
  /** How a task is to be sent at this moment. */
  readonly manner: (task: Task) => Manner;
  readonly acquire_timeout_ms: number;
}

interface Slot {
  opening: Promise<void> | undefined;
  /** There once it is open. */
  connection: Connection | undefined;
  restsUntil: number;
  /** Not yet sent, oldest first. */
  readonly queue: Task[];
}

/**
 * Places for connections, each opened by the first task that is put there, and again after it was lost. Where there are
 * several, the last one takes no searches: other statements never have to wait for them.
 */
export function createSlots({ count, open, manner, acquire_timeout_ms }: SlotsOptions): Slots {
  const slots: Slot[] = Array.from({ length: count }, () => ({
    opening: undefined,
    connection: undefined,
    restsUntil: 0,
    queue: [],
  }));
  const forSearches = slots.slice(0, Math.max(1, count - 1));
  const mayServe = (slot: Slot, { statement }: Task) => !statement.heavy || forSearches.includes(slot);
  /** Also those that take nothing more but have yet to answer. */
  const connections = new Set<Connection>();

  const openSlot = async (slot: Slot) => {
    try {
      const connection = await open({
        freed: () => fill(slot),
        left() {
          slot.connection = undefined;
          fill(slot);
        },
        closed: () => connections.delete(connection),
      });
      slot.connection = connection;
      connections.add(connection);
    } catch (error) {
      slot.restsUntil = performance.now() + REST_MS;
      const works = slots.some((other) => other.connection !== undefined);
      for (const task of slot.queue.splice(0)) {
        if (works) place(task);
        else dropTask(task, unreachable(error));
      }
    }
    slot.opening = undefined;
    fill(slot);
  };

  /** Sends what there is room for. A connection without work takes some that waits for another one. */
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
      const how = manner(task);
      // It had to wait, and its caller may have gone.
      const gone = isAbandoned(task);
      if (!gone) {
        if (!slot.connection.mayTake(how)) return;
        slot.connection.send(task, how);
      }
      queue.shift();
      if (gone) task.end?.();
    }
  };
  const weight = ({ connection, queue, restsUntil }: Slot, now: number) =>
    connection ? connection.load(now) + queue.length * QUEUED : queue.length + (now < restsUntil ? RESTING : 0);
  const place = (task: Task, since?: number) => {
    const now = performance.now();
    task.waiting = since ?? now;
    const able = task.statement.heavy ? forSearches : slots;
    const slot = able.reduce((least, other) => (weight(other, now) < weight(least, now) ? other : least));
    const { connection, queue } = slot;
    const how = manner(task);
    if (queue.length === 0 && connection?.mayTake(how)) return connection.send(task, how);
    queue.push(task);
    fill(slot);
  };

  return {
    place,
    look(now) {
      for (const connection of connections) connection.look(now);
      for (const { queue, connection } of slots) {
        for (let task = queue[0]; task; task = queue[0]) {
          if (!task.told && now - task.waiting <= acquire_timeout_ms) break;
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
