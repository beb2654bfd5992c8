// An operator's OpenTelemetry SDK, loaded with `node --import`. It prints its spans.
import { AsyncLocalStorage } from 'node:async_hooks';
import { context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';

const active = new AsyncLocalStorage();
context.setGlobalContextManager({
  active: () => active.getStore() ?? ROOT_CONTEXT,
  with: (inner, work, self, ...given) => active.run(inner, () => work.apply(self, given)),
  bind: (_inner, target) => target,
  enable() {
    return this;
  },
  disable() {
    return this;
  },
});
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

const printing = {
  export(spans, done) {
    for (const span of spans) {
      const { traceId, spanId } = span.spanContext();
      const { name, parentSpanContext } = span;
      process.stdout.write(`${JSON.stringify({ span: name, traceId, spanId, parent: parentSpanContext?.spanId })}\n`);
    }
    done({ code: 0 });
  },
  shutdown: async () => {},
};
const sdk = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(printing)] });
trace.setGlobalTracerProvider(sdk);

// Stands in for instrumentation of `node:http`, which sends requests to the embedding service.
const { default: http } = await import('node:http');
const request = http.request;
http.request = (...given) => {
  trace.getTracer('http').startSpan('outgoing').end();
  return request(...given);
};
