import { tooBusy } from '../errors.ts';
import { isAbandoned, rejectTask, type Task } from './statement-task.ts';

/** A concurrency limit with one queue for each caller. The callers are served round-robin, so one cannot hold up the others. */
export interface FairQueue {
  /** Starts the task as soon as the limit allows. The task must then be ended with `task.end`. */
  add(task: Task): void;
  /** Rejects tasks that have waited too long. Returns false if the queue is empty. */
  checkDeadlines(now: number): boolean;
}

export interface FairQueueOptions {
  readonly limit: number;
  readonly start: (task: Task) => void;
  readonly acquire_timeout_ms: number;
}

export function createFairQueue({ limit, start, acquire_timeout_ms }: FairQueueOptions): FairQueue {
  let running = 0;
  /** By caller, in the order in which they are served. */
  const queues = new Map<string, Task[]>();

  const run = (task: Task) => {
    running++;
    task.end = () => {
      running--;
      task.end = undefined;
      runNext();
    };
    start(task);
  };
  const runNext = () => {
    while (running < limit) {
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
    add(task) {
      task.queuedAt = performance.now();
      if (running < limit) return run(task);
      const { id } = task.call.caller;
      const queue = queues.get(id);
      if (queue) queue.push(task);
      else queues.set(id, [task]);
    },
    checkDeadlines(now) {
      for (const [caller, queue] of queues) {
        for (let task = queue[0]; task && (task.settled || now - task.queuedAt > acquire_timeout_ms); task = queue[0]) {
          rejectTask(task, tooBusy());
          queue.shift();
        }
        if (queue.length === 0) queues.delete(caller);
      }
      return queues.size > 0;
    },
  };
}
