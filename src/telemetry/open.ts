import type { Embedder, Log, Provider } from '#contract';
import { type BreakerState, type Telemetry, together } from '../core/telemetry.ts';
import { openTracing } from './tracing.ts';

export interface TelemetryOptions {
  /** Whether somebody may ask for measures. */
  readonly metrics: boolean;
  /** Undefined: no traces are made. */
  readonly tracing: TracingOptions | undefined;
}

export interface TracingOptions {
  /** Base of the collector's address, to which `/v1/traces` is added. */
  readonly url: string;
  readonly service_name: string;
  /** Share of the requests that is traced, where the caller has not decided; 0 to 1. */
  readonly ratio: number;
}

/** What is looked at when somebody asks for measures. */
export interface Watched {
  readonly provider: Provider;
  readonly embedder: Embedder | undefined;
  /** Of what the gateway depends on, by name. */
  readonly breakers: () => ReadonlyMap<string, BreakerState>;
}

/** All measures in the format of Prometheus, and the media type of that. */
export interface Measures {
  readonly type: string;
  readonly text: string;
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
