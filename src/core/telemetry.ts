import { type Call, OmpError, type Trace } from '#contract';

/** One call to a dependency of the gateway. */
export interface Operation {
  readonly kind: 'backend' | 'embedding';
  /** The provider, or the embedding service. */
  readonly dependency: string;
  /** The operation, such as `search`; from a closed set. */
  readonly name: string;
  /** Whether it only reads, so that it may be retried. */
  readonly reads: boolean;
}

/** State of a circuit breaker; `half-open`: a probe runs. */
export type BreakerState = 'closed' | 'half-open' | 'open';

/** Runs a call to a dependency with metrics and traces. */
export type Instrument = <Result>(
  operation: Operation,
  call: Call,
  work: (call: Call) => Promise<Result>,
) => Promise<Result>;

/** Metrics, traces, retries and the circuit breaker of one dependency. */
export interface Protection {
  /** Work that only reads may run again. */
  readonly run: Instrument;
  /** Throws while the circuit breaker is open. */
  requireClosed(): void;
}

export const UNPROTECTED: Protection = { run: (_operation, call, work) => work(call), requireClosed: () => {} };

/**
 * Adds the name of the failed dependency to a `provider_error` without one, such as a passed deadline. `kind`: how the dependency
 * calls itself, if it has another name.
 */
export function naming<Thrown>(dependency: string, error: Thrown, kind = dependency): Thrown | OmpError {
  if (!(error instanceof OmpError)) return error;
  const isUnnamed = error.code === 'provider_error' && error.provider === undefined;
  if (!isUnnamed && (kind === dependency || error.provider !== kind)) return error;
  return new OmpError(error.code, error.message, { ...error, cause: error.cause, provider: dependency });
}

/** The outcome of a request. */
interface RequestOutcome {
  readonly method: string;
  /** The route template, never the path. */
  readonly route: string;
  /** 499: the client disconnected. */
  readonly status: number;
  readonly seconds: number;
  readonly requestId: string;
}

/** A request with telemetry. */
export interface ObservedRequest {
  /** Undefined: the request is not traced. */
  readonly trace: Trace | undefined;
  end(outcome: RequestOutcome): void;
}

/** Metrics and traces of requests and of calls to dependencies. */
export interface Telemetry {
  /** `isProbe`: a health check or a metrics scrape, which is not traced. */
  request(method: string, header: (name: string) => string | undefined, isProbe: boolean): ObservedRequest;
  /** Runs the work with a call that propagates the trace. */
  readonly call: Instrument;
}

/** A metric that is read at every scrape. Its name is in docs/metrics.md, and its labels are from closed sets. */
export interface Metric {
  readonly kind: 'counter' | 'gauge';
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** A value that is not available in time is absent. */
  read(): readonly MetricValue[] | Promise<readonly MetricValue[]>;
}

interface MetricValue {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** All metrics of this process as text, and their media type. */
export type Scrape = () => Promise<{ readonly type: string; readonly text: string }>;

export const UNOBSERVED: ObservedRequest = { trace: undefined, end: () => {} };

export const NO_TELEMETRY: Telemetry = {
  request: () => UNOBSERVED,
  call: UNPROTECTED.run,
};

/** Combines two into one. A request gets the trace of the first that creates one. */
export const combine = (first: Telemetry, second: Telemetry): Telemetry => ({
  request(method, header, isProbe) {
    const [one, another] = [first.request(method, header, isProbe), second.request(method, header, isProbe)];
    return {
      trace: one.trace ?? another.trace,
      end(outcome) {
        one.end(outcome);
        another.end(outcome);
      },
    };
  },
  call: (operation, call, work) => first.call(operation, call, (inner) => second.call(operation, inner, work)),
});

/** Makes no spans, but propagates the client's trace context to other services. */
export const propagateOnly: Telemetry = {
  request(_method, header) {
    const context = readTraceContext(header);
    if (!context) return UNOBSERVED;
    const { id, headers } = context;
    return { ...UNOBSERVED, trace: { id, headers: () => headers } };
  },
  call: UNPROTECTED.run,
};

/** The trace context of a client (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly id: string;
  /** The headers for another service, in version 00. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Later versions may append fields after the flags. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The only flag that all versions share: whether the caller records the trace. */
const SAMPLED = 0x01;

/** Vendors must propagate this many characters of `tracestate`; more may be too long for the next service. */
const MAX_STATE = 512;

/** Undefined if the header is missing or malformed; that is no reason to reject a request. */
export function readTraceContext(header: (name: string) => string | undefined): TraceContext | undefined {
  const [, version, ids, flags, more] = TRACEPARENT.exec(header('traceparent') ?? '') ?? [];
  if (ids === undefined || flags === undefined || (version === '00' && more !== undefined)) return undefined;
  const newFlags = version === '00' ? flags : `0${Number.parseInt(flags, 16) & SAMPLED}`;
  const traceparent = `00-${ids}-${newFlags}`;
  const tracestate = header('tracestate');
  const hasState = tracestate !== undefined && tracestate !== '' && tracestate.length <= MAX_STATE;
  return { id: ids.slice(0, 32), headers: hasState ? { traceparent, tracestate } : { traceparent } };
}
