import { DiagLogLevel, diag } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import type { Log } from '#contract';
import { SCOPE, type Sdk } from './spans.ts';

export interface TracingOptions {
  /** Base URL of the collector; `/v1/traces` is appended. */
  readonly url: string;
  readonly service_name: string;
  /** Share of traced requests, 0 to 1, if the caller has not decided. */
  readonly ratio: number;
}

/**
 * OpenTelemetry's own SDK, which sends spans in batches in the background. It reads environment variables that are no
 * settings of the gateway: `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION`, `…_CERTIFICATE`,
 * `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_*` and the span limits.
 */
export function openSdk({ url, service_name, ratio }: TracingOptions, log: Log): Sdk {
  // OpenTelemetry has one logger per process: of several gateways, the last one logs for all.
  diag.setLogger(limitedLogger(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const exporter = new OTLPTraceExporter({ url: `${url.replace(/(?<!\/)\/+$/, '')}/v1/traces` });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': service_name })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new BatchSpanProcessor(withOutageLog(exporter, log))],
  });
  return {
    tracer: provider.getTracer(SCOPE),
    propagator: new W3CTraceContextPropagator(),
    shutdown: () => provider.shutdown(),
  };
}

/** Logs when exporting starts to fail and when it works again, instead of every failure. */
function withOutageLog(inner: SpanExporter, log: Log): SpanExporter {
  let failing = false;
  const logChange = ({ code, error }: ExportResult) => {
    const fails = code !== ExportResultCode.SUCCESS;
    if (fails === failing) return;
    failing = fails;
    if (fails)
      log.warn(reasonOf(error), 'spans are lost: the collector (OTEL_EXPORTER_OTLP_ENDPOINT) does not accept them');
    else log.info({}, 'the collector accepts spans again');
  };
  return {
    export(spans, done) {
      inner.export(spans, (result) => {
        logChange(result);
        // `logChange` has logged a failure.
        done({ code: ExportResultCode.SUCCESS });
      });
    },
    forceFlush: async () => inner.forceFlush?.(),
    shutdown: () => inner.shutdown(),
  };
}

/** A system error code or an HTTP status. Error messages may contain the collector's response. */
const reasonOf = (error: Error | undefined) => ({
  reason: (error as { code?: unknown } | undefined)?.code ?? 'no answer',
});

/** Logs each message of the SDK once, whatever numbers are in it, without its further arguments. */
function limitedLogger(log: Log) {
  const loggedKinds = new Set<string>();
  const warn = (message: string) => {
    const kind = message.replace(/\d+/g, '#');
    if (loggedKinds.has(kind) || loggedKinds.size >= MAX_MESSAGES) return;
    loggedKinds.add(kind);
    log.warn({}, `tracing: ${message}`);
  };
  const nothing = () => {};
  return { error: warn, warn, info: nothing, debug: nothing, verbose: nothing };
}

const MAX_MESSAGES = 100;
