import { setTimeout as sleep } from 'node:timers/promises';
import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { type Call, type Log, OmpError } from '#contract';
import type { Operation } from '../core/telemetry.ts';
import { NoAnswer, withinTime } from './probe.ts';

export interface ResilienceOptions {
  /** How often what may be tried again is tried again. */
  readonly retries: number;
  /** Failures in a row after which the dependency is left alone. */
  readonly breaker_failures: number;
  /** How often it is then asked whether it answers again, in milliseconds. */
  readonly probe_ms: number;
}

export interface DependencyOptions extends ResilienceOptions {
  /** As it appears in errors. */
  readonly name: string;
  /** Asks whether it answers; resolves if it does. */
  readonly probe: (call: Call) => Promise<unknown>;
  readonly log: Log;
}

/** `half-open`: it is being asked whether it answers again. */
export type BreakerState = 'closed' | 'half-open' | 'open';

/** Something the gateway depends on, and what is done about its failures. */
export interface Dependency {
  readonly name: string;
  readonly state: BreakerState;
  /**
   * Runs the work, again where that may help, or refuses it at once while the dependency does not answer: with a
   * `provider_error` that says when to come again.
   */
  run<Result>(operation: Operation, call: Call, work: () => Promise<Result>): Promise<Result>;
  /** It is not asked any more whether it answers. */
  close(): void;
}

/** The shortest pause before another try; it doubles with each, up to the longest. In milliseconds. */
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export function createDependency(options: DependencyOptions): Dependency {
  const { name, probe, log, retries, breaker_failures, probe_ms } = options;
  let timer: NodeJS.Timeout | undefined;
  let openedAt: number | undefined;
  let closed = false;

  const breaker = circuitBreaker(handleWhen(failures()), {
    breaker: new ConsecutiveBreaker(breaker_failures),
    // Only probes are let through, and they have their own timer: the clock, which may be set back, decides nothing.
    halfOpenAfter: Number.NEGATIVE_INFINITY,
  });
  const isClosed = () => breaker.state === CircuitState.Closed;
  // Also told of every probe that fails.
  breaker.onBreak((reason) => {
    if (openedAt !== undefined) return;
    openedAt = performance.now();
    const err = 'error' in reason ? reason.error : undefined;
    log.warn({ dependency: name, err }, `${name} does not answer; nothing is sent to it until it does`);
    askLater();
  });
  breaker.onReset(() => {
    const seconds = Math.round(performance.now() - (openedAt ?? 0)) / 1_000;
    openedAt = undefined;
    log.info({ dependency: name, seconds }, `${name} answers again`);
  });
  const askLater = () => {
    if (!closed) timer = setTimeout(() => void ask(), probe_ms).unref();
  };
  /** Closes the breaker if there is an answer. */
  const ask = async () => {
    await breaker.execute(() => withinTime(probe)).catch(() => {});
    if (!isClosed()) askLater();
  };

  return {
    name,
    get state() {
      if (isClosed()) return 'closed';
      return breaker.state === CircuitState.HalfOpen ? 'half-open' : 'open';
    },
    async run(operation, call, work) {
      for (let tried = 1; ; tried++) {
        // While it is open, or being probed, nobody's request is used to find out.
        if (!isClosed()) throw leftAlone(name);
        try {
          return await breaker.execute(work);
        } catch (error) {
          if (tried > retries || !mayRepeat(error, operation) || !isClosed()) throw error;
        }
        await sleep(pauseAfter(tried), undefined, { signal: call.signal }).catch(() => {});
        call.signal.throwIfAborted();
      }
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Tells whether an error counts. What one cause fails counts once, however many calls that are: a lost connection takes all
 * with it that was sent over it.
 */
function failures(): (error: Error) => boolean {
  let last: unknown;
  return (error) => {
    if (error instanceof NoAnswer) return true;
    const down = error instanceof OmpError ? error.down : error?.name === 'TimeoutError';
    if (!down) return false;
    const cause = error.cause ?? error;
    const another = cause !== last;
    last = cause;
    return another;
  };
}

const mayRepeat = (error: unknown, { kind, reads }: Operation): boolean =>
  kind === 'backend' && error instanceof OmpError && (error.retry === 'safe' || (error.retry === 'reads' && reads));

/** Of random length, so that those who failed together do not come again together. */
const pauseAfter = (tried: number): number =>
  Math.min(LONGEST_PAUSE_MS, PAUSE_MS * 2 ** tried) * (0.5 + Math.random() / 2);

const leftAlone = (provider: string): OmpError =>
  new OmpError('provider_error', `${provider} does not answer at the moment; retry in 1 s`, {
    provider,
    retryAfter: 1,
  });
