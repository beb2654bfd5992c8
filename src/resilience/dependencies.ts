import { setTimeout as sleep } from 'node:timers/promises';
import { backgroundCall, type Call, type Log, OmpError } from '#contract';
import type { BreakerState, Operation, Protection, Telemetry } from '../core/telemetry.ts';

/** Everything the gateway depends on. */
export interface Dependencies {
  /** Adds a dependency. */
  protect(name: string, probe: (call: Call) => Promise<unknown>): Protection;
  /** The states by name of the dependency. */
  states(): ReadonlyMap<string, BreakerState>;
  close(): void;
}

export function createDependencies(options: ResilienceOptions, telemetry: Telemetry, log: Log): Dependencies {
  const all: Dependency[] = [];
  return {
    protect(name, probe) {
      const dependency = createDependency({ ...options, name, probe, log });
      all.push(dependency);
      return {
        run: (operation, call, work) =>
          telemetry.call(operation, call, (tracedCall) => dependency.run(operation, tracedCall, work)),
        requireClosed: dependency.requireClosed,
      };
    },
    states: () => new Map(all.map(({ name, state }) => [name, state])),
    close() {
      for (const { close } of all) close();
    },
  };
}

export interface ResilienceOptions {
  /** Maximum retries of a call. */
  readonly retries: number;
  /** Failures in a row that open the circuit breaker. */
  readonly breaker_failures: number;
  /** Time between two probes of an open circuit breaker, in milliseconds. */
  readonly probe_ms: number;
}

export interface DependencyOptions extends ResilienceOptions {
  /** The name in errors. */
  readonly name: string;
  /** Resolves if it answers. */
  readonly probe: (call: Call) => Promise<unknown>;
  readonly log: Log;
}

/** Something the gateway depends on, with retries and a circuit breaker. */
export interface Dependency {
  readonly name: string;
  readonly state: BreakerState;
  /**
   * Runs the work, with retries where that may help. While the circuit breaker is open, throws at once: a
   * `provider_error` with `retryAfter`.
   */
  run<Result>(operation: Operation, call: Call, work: (call: Call) => Promise<Result>): Promise<Result>;
  /** Throws as `run` does while the circuit breaker is open. */
  requireClosed(): void;
  /** Ends the probes. */
  close(): void;
}

/** Longest pause before the first retry, in milliseconds. It doubles with each. */
const PAUSE_MS = 100;

export function createDependency(options: DependencyOptions): Dependency {
  const { name, probe, log, retries, breaker_failures, probe_ms } = options;
  const isAnother = causes();
  let state: BreakerState = 'closed';
  let failed = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  let probing: Promise<void> | undefined;
  /** A call got no answer in time, which may be the fault of what it asked for: it counts as the probe ends. One probe runs for all. */
  const suspect = () => {
    if (closed || state !== 'closed') return;
    probing ??= withDeadline(probe).finally(() => {
      probing = undefined;
    });
    probing.then(
      () => {
        failed = 0;
      },
      (error: unknown) => count(error),
    );
  };
  const count = (error: unknown) => {
    if (++failed >= breaker_failures) open(error);
  };
  const requireClosed = () => {
    if (state !== 'closed') throw breakerOpenError(name);
  };
  const open = (err: unknown) => {
    if (state !== 'closed') return;
    state = 'open';
    log.warn({ dependency: name, err }, `${name} does not answer; its circuit breaker is open`);
    probeUntilItAnswers(performance.now());
  };
  /** Probes alone close the breaker. They have their own timer, so a clock that is set back does not matter. */
  const probeUntilItAnswers = (openedAt: number) => {
    if (closed) return;
    const probeOnce = async () => {
      state = 'half-open';
      try {
        await withDeadline(probe);
      } catch {
        state = 'open';
        return probeUntilItAnswers(openedAt);
      }
      state = 'closed';
      failed = 0;
      const seconds = Math.round(performance.now() - openedAt) / 1_000;
      log.info({ dependency: name, seconds }, `${name} answers again`);
    };
    timer = setTimeout(() => void probeOnce(), probe_ms).unref();
  };

  return {
    name,
    get state() {
      return state;
    },
    async run(operation, call, work) {
      for (let attempt = 1; ; attempt++) {
        // Requests never serve as probes.
        requireClosed();
        try {
          const result = await work(call);
          failed = 0;
          return result;
        } catch (error) {
          const down = saysDown(error);
          const counts = down !== false && isAnother(error);
          if (counts && down === 'suspected') suspect();
          else if (counts) count(error);
          if (attempt > retries || !mayRepeat(error, operation) || state !== 'closed') throw error;
        }
        await sleep(retryPause(attempt), undefined, { signal: call.signal }).catch(() => {});
        call.throwIfAborted();
      }
    },
    requireClosed,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Whether an error has another cause than the one before. Those with the same count once towards the circuit breaker: a lost connection
 * fails all calls on it, and a deadline all calls of its request.
 */
function causes(): (error: unknown) => boolean {
  let last: unknown;
  return (error) => {
    const cause = (error as Error).cause ?? error;
    const another = cause !== last;
    last = cause;
    return another;
  };
}

const saysDown = (error: unknown): OmpError['down'] => {
  if (error instanceof OmpError) return error.down;
  return error instanceof Error && error.name === 'TimeoutError' && 'suspected';
};

const mayRepeat = (error: unknown, { kind, reads }: Operation): boolean =>
  kind === 'backend' && error instanceof OmpError && (error.retry === 'safe' || (error.retry === 'reads' && reads));

/** Random, so that calls that failed together do not retry together. */
const retryPause = (attempt: number): number => PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);

const breakerOpenError = (provider: string): OmpError =>
  new OmpError('provider_error', `${provider} does not answer at the moment; retry in 1 s`, {
    provider,
    retryAfter: 1,
  });

/** Deadline of a probe, in milliseconds. */
const PROBE_DEADLINE_MS = 2_000;

/**
 * Rejects unless the probe is answered in time, even if it ignores its signal. An error may be an answer, as of any call: a limit, a key
 * that is refused, a store that takes no changes.
 */
async function withDeadline(probe: (call: Call) => Promise<unknown>): Promise<void> {
  const call = backgroundCall('probe', AbortSignal.timeout(PROBE_DEADLINE_MS));
  try {
    await call.unlessAborted(probe(call));
  } catch (error) {
    if (!(error instanceof OmpError) || error.down !== false) throw error;
  }
}
