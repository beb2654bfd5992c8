import type { Log } from '#contract';
import { type Telemetry, together, UNFOLLOWED } from '../core/telemetry.ts';
import type { Measures, Watched } from './metrics.ts';
import type { TracingOptions } from './otlp.ts';
import type { Sdk } from './spans.ts';

export interface TelemetryOptions {
  /** Whether somebody may ask for measures. */
  readonly metrics: boolean;
  /** Undefined: no traces are made. */
  readonly tracing: TracingOptions | undefined;
}

export interface OpenTelemetry extends Telemetry {
  /** From now on these are looked at too. */
  watch(watched: Watched): void;
  /** Undefined: none are taken. */
  readonly measures: (() => Promise<Measures>) | undefined;
  /** Sends what waits to be sent. */
  close(): Promise<void>;
}

export async function openTelemetry({ metrics, tracing }: TelemetryOptions, log: Log): Promise<OpenTelemetry> {
  const traces = await openTracing(tracing, log);
  if (!metrics) return { ...traces.telemetry, watch: () => {}, measures: undefined, close: traces.close };
  const { telemetry, watch, measures, close } = (await import('./metrics.ts')).openMetrics();
  return {
    ...together([telemetry, traces.telemetry]),
    watch,
    measures,
    close: () => {
      close();
      return traces.close();
    },
  };
}

export interface OpenTracing {
  readonly telemetry: Telemetry;
  /** Sends what waits to be sent, within two seconds. Never rejects. */
  close(): Promise<void>;
}

/** Where OpenTelemetry's API keeps what is registered, so that several copies of it find the same. */
const REGISTRY = Symbol.for('opentelemetry.js.api.1');

/** Longest wait for the collector at the end, in milliseconds. */
const FLUSH_MS = 2_000;

/**
 * Spans go to the SDK that the operator has registered with OpenTelemetry's API, if there is one, else to the configured
 * collector. Without either no spans are made and nothing of OpenTelemetry is loaded.
 */
export async function openTracing(options: TracingOptions | undefined, log: Log): Promise<OpenTracing> {
  const sdk = await openSdk(options, log);
  if (!sdk) return { telemetry: passingOn, close: async () => {} };
  const { spansOf } = await import('./spans.ts');
  return { telemetry: spansOf(sdk), close: () => flush(sdk, log) };
}

async function openSdk(options: TracingOptions | undefined, log: Log): Promise<Sdk | undefined> {
  if (REGISTRY in globalThis) {
    const { registeredSdk } = await import('./spans.ts');
    const sdk = registeredSdk();
    if (sdk) {
      log.info({}, 'traces go to the OpenTelemetry SDK that was registered before, as that is configured');
      return sdk;
    }
  }
  return options && (await import('./otlp.ts')).openSdk(options, log);
}

async function flush(sdk: Sdk, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS, 'late');
  });
  const ended = await Promise.race([sdk.shutdown().catch(() => 'failed'), late]);
  clearTimeout(timer);
  if (ended !== undefined) log.warn({}, 'the last traces could not be sent');
}

/** No spans are made, but a client's trace goes on through the services that are asked on its behalf. */
export const passingOn: Telemetry = {
  request(_method, header) {
    const given = readTraceContext(header);
    if (!given) return UNFOLLOWED;
    const { id, headers } = given;
    return { ...UNFOLLOWED, trace: { id, headers: () => headers } };
  },
  call: (_operation, call, work) => work(call),
};

/** The trace that a client's headers name (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly id: string;
  /** The same, for another service, in the version of the headers that is known here. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Later versions may say more after the flags; what they begin with stays. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The flag that is known of every version: whether the caller records this trace. */
const SAMPLED = 0x01;

/** As much has to be passed on; more may be too much for the next service. In characters. */
const MOST_STATE = 512;

/** Undefined: none is named, or not as it should be, which is no reason to refuse a request. */
export function readTraceContext(header: (name: string) => string | undefined): TraceContext | undefined {
  const [, version, ids, flags, more] = TRACEPARENT.exec(header('traceparent') ?? '') ?? [];
  if (ids === undefined || flags === undefined || (version === '00' && more !== undefined)) return undefined;
  const known = version === '00' ? flags : `0${Number.parseInt(flags, 16) & SAMPLED}`;
  const traceparent = `00-${ids}-${known}`;
  const tracestate = header('tracestate');
  const passed = tracestate !== undefined && tracestate !== '' && tracestate.length <= MOST_STATE;
  return { id: ids.slice(0, 32), headers: passed ? { traceparent, tracestate } : { traceparent } };
}
