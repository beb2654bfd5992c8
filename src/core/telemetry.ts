import { type Call, OmpError, providerError, type Trace } from '#contract';

/** One call to a dependency of the gateway. */
export interface Operation {
  readonly kind: 'backend' | 'embedding';
  /** The provider, or the embedding service. */
  readonly dependency: string;
  /** What is asked of it, such as `search`; one of few. */
  readonly name: string;
  /** Whether it changes nothing, so that it may be tried again. */
  readonly reads: boolean;
}

/** Whether a dependency is called; `half-open`: it is being asked whether it answers again. */
export type BreakerState = 'closed' | 'half-open' | 'open';

/** Runs a call to a dependency with metrics, traces, retries and the circuit breaker. Work that only reads may run again. */
export type Instrument = <Result>(
  operation: Operation,
  call: Call,
  work: (call: Call) => Promise<Result>,
) => Promise<Result>;

export const uninstrumented: Instrument = (_operation, call, work) => work(call);

/** The error with the name of the dependency that failed, unless it names one: a passed deadline does not. */
export const naming = (dependency: string, error: unknown): unknown =>
  error instanceof OmpError && error.code === 'provider_error' && error.provider === undefined
    ? providerError(dependency, error.message, error)
    : error;

/** How a request was answered. */
export interface RequestEnd {
  readonly method: string;
  /** The template, never the path. */
  readonly route: string;
  /** 499: the client went away. */
  readonly status: number;
  readonly seconds: number;
  readonly requestId: string;
}

/** A request that is being followed. */
export interface FollowedRequest {
  /** Undefined: nobody wants to know where it leads. */
  readonly trace: Trace | undefined;
  end(how: RequestEnd): void;
}

/** What measures and traces are made of: told of every request, and of every call to a dependency. */
export interface Telemetry {
  /** The path is told to decide by, never to be kept: it holds ids. */
  request(method: string, header: (name: string) => string | undefined, path: string): FollowedRequest;
  /** Runs the work, with a call that carries the trace on. */
  readonly call: Instrument;
}

/** Nobody follows it. */
export const UNFOLLOWED: FollowedRequest = { trace: undefined, end: () => {} };

/** Nobody watches. */
export const UNWATCHED: Telemetry = {
  request: () => UNFOLLOWED,
  call: uninstrumented,
};

/** Several at once. A request carries the trace of the first that makes one. */
export function together(watching: readonly Telemetry[]): Telemetry {
  const [first, ...rest] = watching;
  if (!first) return UNWATCHED;
  if (rest.length === 0) return first;
  const others = together(rest);
  return {
    request(method, header, path) {
      const [one, another] = [first.request(method, header, path), others.request(method, header, path)];
      return {
        trace: one.trace ?? another.trace,
        end(how) {
          one.end(how);
          another.end(how);
        },
      };
    },
    call: (operation, call, work) => first.call(operation, call, (inner) => others.call(operation, inner, work)),
  };
}
