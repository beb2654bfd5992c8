import { tooBusy } from '../errors.ts';
import { failTask, isAbandoned, type Task } from './task.ts';

/** Lets so many tasks go on at once. Those that wait do so in a queue for each caller, and the callers take turns. */
export interface Turns {
  /** Starts the task when it is its turn. It has to be ended by `task.end`. */
  enter(task: Task): void;
  /** Looks at the deadlines; false when nothing waits. */
  look(now: number): boolean;
}

export interface TurnsOptions {
  readonly most: number;
  readonly start: (task: Task) => void;
  readonly acquire_timeout_ms: number;
}

export function createTurns({ most, start, acquire_timeout_ms }: TurnsOptions): Turns {
  let running = 0;
  /** In the order in which the callers' turns come. */
  const queues = new Map<string, Task[]>();

  const run = (task: Task) => {
    running++;
    task.end = () => {
      running--;
      task.end = undefined;
      next();
    };
    start(task);
  };
  const next = () => {
    while (running < most) {
      const [first] = queues;
      if (!first) return;
      const [caller, queue] = first;
      const task = queue.shift();
      queues.delete(caller);
      if (queue.length > 0) queues.set(caller, queue);
      if (task && !isAbandoned(task)) run(task);
    }
  };

  return {
    enter(task) {
      task.waiting = performance.now();
      if (running < most) return run(task);
      const { id } = task.call.caller;
      const queue = queues.get(id);
      if (queue) queue.push(task);
      else queues.set(id, [task]);
    },
    look(now) {
      for (const [caller, queue] of queues) {
        for (let task = queue[0]; task && (task.told || now - task.waiting > acquire_timeout_ms); task = queue[0]) {
          failTask(task, tooBusy());
          queue.shift();
        }
        if (queue.length === 0) queues.delete(caller);
      }
      return queues.size > 0;
    },
  };
}
