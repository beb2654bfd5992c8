import { backgroundCall, type Call, providerError } from '#contract';

type Ping = (call: Call) => Promise<void>;

/** Whether the gateway can serve now. */
export interface Health {
  readonly phase: 'starting' | 'serving' | 'draining';
  /** Enters the phase `serving`; `check` calls `ping` from now on. */
  begin(ping: Ping): void;
  /** Enters the phase `draining`: the gateway still serves, but load balancers should send no new requests. */
  drain(): void;
  /**
   * Rejects with an `OmpError` if the backend does not answer within 2 s. The result is cached for a short time, and only
   * one ping runs at a time.
   */
  check(): Promise<void>;
}

/** How long a success is cached, in milliseconds. */
const SUCCESS_MS = 1_000;
/** How long a failure is cached, in milliseconds. Short, so that a recovery shows soon. */
const FAILURE_MS = 250;
/** Deadline of a ping, in milliseconds. */
const PING_DEADLINE_MS = 2_000;

/** `provider` is the name of the backend in errors. */
export function createHealth(provider: string): Health {
  let phase: Health['phase'] = 'starting';
  let ping: Ping | undefined;
  let answer: Promise<void> | undefined;
  /** When the cached answer expires, by the monotonic clock. */
  let expires = 0;
  /** Whether a ping exceeded its deadline and still runs. No other ping starts before it ends. */
  let late = false;

  const ask = (work: Ping): Promise<void> =>
    new Promise((resolve, reject) => {
      const controller = new AbortController();
      const timer = setTimeout(() => {
        late = true;
        const error = providerError(provider, 'the backend does not answer in time');
        reject(error);
        controller.abort(error);
      }, PING_DEADLINE_MS);
      const settle = () => {
        clearTimeout(timer);
        late = false;
      };
      // Async, so that a synchronous throw rejects too.
      const answered = (async () => work(backgroundCall('health', controller.signal)))();
      answered.finally(settle).then(resolve, reject);
    });

  return {
    get phase() {
      return phase;
    },
    begin(work) {
      ping = work;
      phase = 'serving';
    },
    drain() {
      phase = 'draining';
    },
    check() {
      if (!ping) return Promise.reject(providerError(provider, 'the gateway is starting'));
      if (answer && (late || performance.now() < expires)) return answer;
      const next = ask(ping);
      answer = next;
      expires = Number.POSITIVE_INFINITY;
      const cacheFor = (ms: number) => () => {
        expires = performance.now() + ms;
      };
      next.then(cacheFor(SUCCESS_MS), cacheFor(FAILURE_MS));
      return next;
    },
  };
}
