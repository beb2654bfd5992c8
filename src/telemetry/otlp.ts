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
  /** Base of the collector's address, to which `/v1/traces` is added. */
  readonly url: string;
  readonly service_name: string;
  /** Share of the requests that is traced, where the caller has not decided; 0 to 1. */
  readonly ratio: number;
}

/**
 * OpenTelemetry's own SDK, which sends spans in batches, in the background. Of the environment it reads by itself what is
 * no setting of the gateway: `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION`, `…_CERTIFICATE`,
 * `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_*` and the limits of spans.
 */
export function openSdk({ url, service_name, ratio }: TracingOptions, log: Log): Sdk {
  diag.setLogger(quietly(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const exporter = new OTLPTraceExporter({ url: `${url.replace(/(?<!\/)\/+$/, '')}/v1/traces` });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': service_name })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new BatchSpanProcessor(telling(exporter, log))],
  });
  return {
    tracer: provider.getTracer(SCOPE),
    propagator: new W3CTraceContextPropagator(),
    shutdown: () => provider.shutdown(),
  };
}

/** Tells when sending begins to fail and when it works again, instead of every time. */
function telling(inner: SpanExporter, log: Log): SpanExporter {
  let failing = false;
  const tell = ({ code, error }: ExportResult) => {
    const fails = code !== ExportResultCode.SUCCESS;
    if (fails === failing) return;
    failing = fails;
    if (fails)
      log.warn(reasonOf(error), 'traces are lost: the collector (OTEL_EXPORTER_OTLP_ENDPOINT) does not take them');
    else log.info({}, 'the collector takes traces again');
  };
  return {
    export(spans, done) {
      inner.export(spans, (result) => {
        tell(result);
        // Told already.
        done({ code: ExportResultCode.SUCCESS });
      });
    },
    forceFlush: async () => inner.forceFlush?.(),
    shutdown: () => inner.shutdown(),
  };
}

/** A code of the system or a status of HTTP; texts may hold what the collector answered. */
const reasonOf = (error: Error | undefined) => ({
  reason: (error as { code?: unknown } | undefined)?.code ?? 'no answer',
});

/** What the SDK has to say, each thing once, whatever numbers are in it; without what comes after the message. */
function quietly(log: Log) {
  const said = new Set<string>();
  const say = (message: string) => {
    const kind = message.replace(/\d+/g, '#');
    if (said.has(kind) || said.size >= MOST_SAID) return;
    said.add(kind);
    log.warn({}, `tracing: ${message}`);
  };
  const nothing = () => {};
  return { error: say, warn: say, info: nothing, debug: nothing, verbose: nothing };
}

const MOST_SAID = 100;
