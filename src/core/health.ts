import { type Call, GATEWAY, providerError } from '#contract';

type Ping = (call: Call) => Promise<void>;

/** Asked every few seconds by several parties: what is written down of other requests would be buried under theirs. */
export const PROBES: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/metrics']);

/** Whether the gateway can serve at this moment. */
export interface Health {
  readonly phase: 'starting' | 'serving' | 'draining';
  /** From now on it serves, and this tells whether the backend answers. */
  begin(ping: Ping): void;
  /** It goes on serving, but nothing new is to be sent here. */
  drain(): void;
  /**
   * Rejects with an `OmpError` unless the backend answers, or answered a moment ago: however often this is asked, the
   * backend is asked for one answer at a time, at most once a second while they are good, and waited for at most two.
   */
  check(): Promise<void>;
}

/** How long a good answer is believed, in milliseconds. */
const GOOD_MS = 1_000;
/** How long a bad one is: short, for a backend that is back is to be noticed. */
const BAD_MS = 250;
/** Longest wait for the backend, in milliseconds. */
const WAIT_MS = 2_000;

/** `provider` is the backend as errors name it. */
export function createHealth(provider: string): Health {
  let phase: Health['phase'] = 'starting';
  let ping: Ping | undefined;
  let answer: Promise<void> | undefined;
  /** When the answer is no longer believed, by the monotonic clock. */
  let until = 0;
  /** A backend that has not answered in time is not asked again before it did, or gave up. */
  let late = false;

  const ask = (pinged: Ping): Promise<void> =>
    new Promise((resolve, reject) => {
      const controller = new AbortController();
      const timer = setTimeout(() => {
        late = true;
        const error = providerError(provider, 'the backend does not answer in time');
        reject(error);
        controller.abort(error);
      }, WAIT_MS);
      const settled = () => {
        clearTimeout(timer);
        late = false;
      };
      // Thrown at once or later: it is all the same.
      const asked = (async () => pinged({ signal: controller.signal, requestId: 'health', caller: GATEWAY }))();
      asked.finally(settled).then(resolve, reject);
    });

  return {
    get phase() {
      return phase;
    },
    begin(pinged) {
      ping = pinged;
      phase = 'serving';
    },
    drain() {
      phase = 'draining';
    },
    check() {
      if (!ping) return Promise.reject(providerError(provider, 'the gateway is starting'));
      if (answer && (late || performance.now() < until)) return answer;
      const asked = ask(ping);
      answer = asked;
      until = Number.POSITIVE_INFINITY;
      const believe = (ms: number) => () => {
        until = performance.now() + ms;
      };
      asked.then(believe(GOOD_MS), believe(BAD_MS));
      return asked;
    },
  };
}
