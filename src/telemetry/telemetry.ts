import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#contract';
import { combine, type Telemetry, UNOBSERVED } from '../core/telemetry.ts';
import type { MetricSources, MetricsText } from './metrics.ts';
import type { TracingOptions } from './otlp.ts';
import type { Sdk } from './spans.ts';

export interface TelemetryOptions {
  /** Whether metrics are collected. */
  readonly metrics: boolean;
  /** Undefined: no spans are exported. */
  readonly tracing: TracingOptions | undefined;
}

export interface OpenTelemetry extends Telemetry {
  /** Adds gauges and counters of these. */
  watch(sources: MetricSources): void;
  /** Undefined: metrics are not collected. */
  readonly scrape: (() => Promise<MetricsText>) | undefined;
  /** Sends the last spans. Never rejects. */
  close(): Promise<void>;
}

export async function openTelemetry({ metrics, tracing }: TelemetryOptions, log: Log): Promise<OpenTelemetry> {
  const traces = await openTracing(tracing, log);
  if (!metrics) return { ...traces.telemetry, watch: () => {}, scrape: undefined, close: traces.close };
  const { telemetry, watch, scrape, close } = (await import('./metrics.ts')).openMetrics();
  return {
    ...combine([telemetry, traces.telemetry]),
    watch,
    scrape,
    close: () => {
      close();
      return traces.close();
    },
  };
}

interface OpenTracing {
  readonly telemetry: Telemetry;
  /** Sends the last spans, within two seconds. Never rejects. */
  close(): Promise<void>;
}

/** Where OpenTelemetry's API registers an SDK, shared by all copies of the API. */
const REGISTRY = Symbol.for('opentelemetry.js.api.1');

/** Deadline for sending the last spans, in milliseconds. */
const FLUSH_MS = 2_000;

/**
 * Sends spans to the SDK that the operator has registered with OpenTelemetry's API, else to the configured collector.
 * Without either there are no spans and OpenTelemetry is not loaded.
 */
export async function openTracing(options: TracingOptions | undefined, log: Log): Promise<OpenTracing> {
  const sdk = await openSdk(options, log);
  if (!sdk) return { telemetry: propagateOnly, close: async () => {} };
  const { traceTo } = await import('./spans.ts');
  return { telemetry: traceTo(sdk), close: () => flush(sdk, log) };
}

async function openSdk(options: TracingOptions | undefined, log: Log): Promise<Sdk | undefined> {
  if (REGISTRY in globalThis) {
    const { registeredSdk } = await import('./spans.ts');
    const sdk = registeredSdk();
    if (sdk) {
      log.info({}, 'spans go to the OpenTelemetry SDK that is already registered, with its configuration');
      return sdk;
    }
  }
  return options && (await import('./otlp.ts')).openSdk(options, log);
}

async function flush(sdk: Sdk, log: Log): Promise<void> {
  const shutdown = sdk.shutdown().then(
    () => true,
    () => false,
  );
  const inTime = await Promise.race([shutdown, sleep(FLUSH_MS, false, { ref: false })]);
  if (!inTime) log.warn({}, 'the last spans could not be sent');
}

/** Makes no spans, but propagates the client's trace context to other services. */
export const propagateOnly: Telemetry = {
  request(_method, header) {
    const context = readTraceContext(header);
    if (!context) return UNOBSERVED;
    const { id, headers } = context;
    return { ...UNOBSERVED, trace: { id, headers: () => headers } };
  },
  call: (_operation, call, work) => work(call),
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
