import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#contract';
import { combine, propagateOnly, type Telemetry } from '../core/telemetry.ts';
import type { MetricsText } from './metrics.ts';
import type { TracingOptions } from './otlp.ts';
import type { MetricSources } from './sources.ts';
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
    ...combine(telemetry, traces.telemetry),
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
