import type { Config } from '../config/schema.ts';
import type { Gateway } from '../serve.ts';

/** What a worker is told to do, once, before anything else. */
export interface Task {
  readonly config: Config;
  /** What one process owns for all, as the provider gave it out. */
  readonly shared: unknown;
  /** Which of the workers this is, from 1 on. */
  readonly worker: number;
}

/** What a worker tells of itself when it serves. */
export type Serving = Omit<Gateway, 'close' | 'check'>;

/** From the primary process to a worker. Other libraries use the same channel: each knows its own messages. */
export type ToWorker =
  | { readonly omp: 'serve'; readonly task: Task }
  | { readonly omp: 'stop' }
  | { readonly omp: 'check'; readonly question: number };

/** From a worker to the primary process. */
export type FromWorker =
  /** It listens to the channel; what was sent before is lost. */
  | { readonly omp: 'here' }
  | { readonly omp: 'serving'; readonly serving: Serving }
  /** The process ends; the message is one an operator can act on. */
  | { readonly omp: 'failed'; readonly message: string }
  /** Whether the backend answers there; `problem` says why not. */
  | { readonly omp: 'checked'; readonly question: number; readonly problem: string | undefined };

/** Undefined: the message is somebody else's. */
export const ofOurs = <Message extends ToWorker | FromWorker>(message: unknown): Message | undefined =>
  typeof message === 'object' && message !== null && 'omp' in message ? (message as Message) : undefined;
