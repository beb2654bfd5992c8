import { LRUCache } from 'lru-cache';
import { tooBusy } from '../postgres-errors.ts';
import { isAbandoned, rejectTask, type Task } from './task.ts';

/** Decides whether one more statement may be in flight. */
export interface Limit {
  /** Counts the task, unless there is no room for it: in all (`full`), or for more of its caller (`caller`). */
  take(task: Task): 'taken' | 'full' | 'caller';
  /** The task has ended. */
  give(task: Task): void;
}

/** A limit with one queue for each caller. The callers are served round-robin, so one cannot hold up the others. */
export function createFairQueue(limit: Limit, acquire_timeout_ms: number, run: (task: Task) => void) {
  /** The queue of each caller, in the order in which callers are served. */
  const queues = new Map<string, Task[]>();

  const start = (task: Task) => {
    task.limit = fairQueue;
    run(task);
  };
  /** Starts the next task. False: there is none that may start. */
  const startNext = (): boolean => {
    for (const [caller, queue] of queues) {
      while (queue[0] && isAbandoned(queue[0])) queue.shift();
      const [task] = queue;
      const taken = task && limit.take(task);
      // Those behind it would take the room for which it waits.
      if (taken === 'full') return false;
      if (taken === 'caller') continue;
      queue.shift();
      queues.delete(caller);
      if (queue.length > 0) queues.set(caller, queue);
      // Last: it may end others, which start more.
      if (task) start(task);
      return true;
    }
    return false;
  };
  const fairQueue = {
    /** Starts the task as soon as the limit allows. The task must then be ended with `endTask`. */
    enqueue(task: Task) {
      task.queuedAt = performance.now();
      if (queues.size === 0 && limit.take(task) === 'taken') return start(task);
      const { id } = task.call.caller;
      const queue = queues.get(id);
      if (queue) queue.push(task);
      else queues.set(id, [task]);
      while (startNext());
    },
    ended(task: Task) {
      limit.give(task);
      while (startNext());
    },
    /** Rejects tasks that have waited too long. Returns false if the queue is empty. */
    checkDeadlines(now: number): boolean {
      for (const [caller, queue] of queues) {
        rejectExpired(queue, now - acquire_timeout_ms, (task) => rejectTask(task, tooBusy()));
        if (queue.length === 0) queues.delete(caller);
      }
      return queues.size > 0;
    },
  };
  return fairQueue;
}

/** Takes tasks that are settled, or were queued before `since`, from the front of a queue. */
export function rejectExpired(queue: Task[], since: number, reject: (task: Task) => void): void {
  for (let task = queue[0]; task && (task.settled || task.queuedAt < since); task = queue[0]) {
    queue.shift();
    reject(task);
  }
}

/** At most so many in flight. */
export function createCount(most: number): Limit {
  let running = 0;
  return {
    take() {
      if (running >= most) return 'full';
      running++;
      return 'taken';
    },
    give() {
      running--;
    },
  };
}

/**
 * Heavy statements in flight for each connection that takes them: the next one is there when one ends. The heavy statements of all
 * other callers wait for those in flight, so there are more only while they are quick, which takes a tenth less processor time.
 */
const IN_FLIGHT = 2;
const QUICK_IN_FLIGHT = 4;
/** A caller's heavy statements that take less than this on average are quick, in milliseconds. */
const QUICK_MS = 5;
/** Once one of them has taken longer than this, they are slow, and each needs a connection of its own. */
const SLOW_MS = 100;
/** What is remembered of earlier ones changes by this part of the difference with each that ends. */
const CHANGE = 1 / 8;
/** Callers that are remembered. */
const MAX_CALLERS = 10_000;

/** What a caller has in flight, and what its heavy statements take, in milliseconds. */
interface CallerLoad {
  connections: number;
  mean: number;
  /** Rises at once. Unknown callers are slow until they have shown that they are not. */
  slowest: number;
}

/**
 * The limit of heavy statements. A caller whose statements are slow has at most one on all of these connections but one, so that the
 * next heavy statement of another caller does not wait for them. Of a single connection nothing is kept free.
 */
export function createHeavyLimit(connections: number): Limit {
  const loads = new LRUCache<string, CallerLoad>({ max: MAX_CALLERS });
  const inFlight = new Map<Task, { readonly load: CallerLoad; readonly cost: number }>();
  const mostOfSlow = Math.max(1, connections - 1);
  let used = 0;

  const loadOf = ({ call: { caller } }: Task): CallerLoad => {
    const known = loads.get(caller.id);
    if (known) return known;
    const load = { connections: 0, mean: QUICK_MS, slowest: Number.POSITIVE_INFINITY };
    loads.set(caller.id, load);
    return load;
  };
  const isSlow = (load: CallerLoad): boolean => {
    if (load.slowest > SLOW_MS) return true;
    const since = performance.now() - SLOW_MS;
    for (const [{ startedAt }, taken] of inFlight)
      if (taken.load === load && startedAt > 0 && startedAt < since) return true;
    return false;
  };
  return {
    take(task) {
      const load = loadOf(task);
      const slow = isSlow(load);
      const cost = slow ? 1 : 1 / (load.mean < QUICK_MS ? QUICK_IN_FLIGHT : IN_FLIGHT);
      if (slow && load.connections + cost > mostOfSlow) return 'caller';
      if (used + cost > connections) return 'full';
      task.slow = slow;
      inFlight.set(task, { load, cost });
      load.connections += cost;
      used += cost;
      return 'taken';
    },
    give(task) {
      const taken = inFlight.get(task);
      if (!taken) return;
      const { load, cost } = taken;
      inFlight.delete(task);
      load.connections -= cost;
      used -= cost;
      if (task.startedAt === 0) return;
      const took = performance.now() - task.startedAt;
      load.mean += (took - load.mean) * CHANGE;
      load.slowest =
        load.slowest === Number.POSITIVE_INFINITY
          ? took
          : Math.max(took, load.slowest + (took - load.slowest) * CHANGE);
    },
  };
}
