import {
  type Attributes,
  type Context,
  context,
  defaultTextMapSetter,
  ProxyTracerProvider,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapPropagator,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { OmpError, type Trace } from '#contract';
import {
  type Instrument,
  type ObservedRequest,
  type Operation,
  type Telemetry,
  UNOBSERVED,
} from '../core/telemetry.ts';

/** The instrumentation scope of every span. */
export const SCOPE = 'omp-gateway';

/** Creates spans, and reads and writes the headers that connect those of several services. */
export interface Tracing {
  readonly tracer: Tracer;
  readonly propagator: Pick<TextMapPropagator, 'extract' | 'inject'>;
}

export interface Sdk extends Tracing {
  /** Sends the last spans. */
  shutdown(): Promise<void>;
}

/** The position of a request, or of a part of it, in the trace. */
interface SpanTrace extends Trace {
  readonly span: Span;
  readonly context: Context;
}

type Header = (name: string) => string | undefined;

const HEADERS = { get: (header: Header, name: string) => header(name), keys: () => [] };

/** Other methods are `_OTHER`, and `HTTP` in span names. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS']);

/** One span per request, with a child span per call to a dependency. */
export function traceTo({ tracer, propagator }: Tracing): Telemetry {
  const follow = (span: Span, outer: Context): SpanTrace => {
    const inner = trace.setSpan(outer, span);
    return {
      span,
      context: inner,
      id: span.spanContext().traceId,
      headers() {
        const headers: Record<string, string> = {};
        propagator.inject(inner, headers, defaultTextMapSetter);
        return headers;
      },
    };
  };

  const call: Instrument = async (operation, call, work) => {
    const outer = call.trace as SpanTrace | undefined;
    if (!outer) return work(call);
    if (!outer.span.isRecording()) return context.with(outer.context, work, undefined, call);
    const span = tracer.startSpan(`${operation.dependency} ${operation.name}`, facts(operation), outer.context);
    const inner = follow(span, outer.context);
    try {
      return await context.with(inner.context, work, undefined, call.with({ trace: inner }));
    } catch (error) {
      const code = error instanceof OmpError ? error.code : 'provider_error';
      span.setAttribute('error.type', call.aborted ? 'aborted' : code);
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  };

  return {
    call,
    request(method, header, isProbe) {
      if (isProbe) return UNOBSERVED;
      const active = context.active();
      // The operator's own instrumentation may have created a span of this request already.
      const isNested = trace.getSpan(active) !== undefined;
      const outer = isNested ? active : propagator.extract(active, header, HEADERS);
      const kind = isNested ? SpanKind.INTERNAL : SpanKind.SERVER;
      const isKnown = METHODS.has(method);
      const name = isKnown ? method : 'HTTP';
      const attributes = { 'http.request.method': isKnown ? method : '_OTHER', 'url.scheme': 'http' };
      const span = tracer.startSpan(name, { kind, attributes }, outer);
      return { trace: follow(span, outer), end: endOf(span, name) };
    },
  };
}

const endOf =
  (span: Span, method: string): ObservedRequest['end'] =>
  ({ route, status, requestId }) => {
    if (span.isRecording()) {
      span.updateName(`${method} ${route}`);
      span.setAttributes({ 'http.route': route, 'http.response.status_code': status, 'omp.request_id': requestId });
      if (status >= 499) span.setAttribute('error.type', `${status}`);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  };

/** Dependencies that run in this process. */
const IN_PROCESS = ['memory', 'local'];
/** Names of databases in the semantic conventions. */
const DATABASES: Readonly<Record<string, string>> = { postgres: 'postgresql' };

function facts({ kind, dependency, name }: Operation): { kind: SpanKind; attributes: Attributes } {
  const attributes = kind === 'backend' && {
    'db.system.name': DATABASES[dependency] ?? dependency,
    'db.operation.name': name,
  };
  return { kind: IN_PROCESS.includes(dependency) ? SpanKind.INTERNAL : SpanKind.CLIENT, attributes: attributes || {} };
}

/** The SDK that the operator has loaded before the gateway (`node --import`) and configures. */
export function registeredSdk(): Sdk | undefined {
  const provider = behind(trace.getTracerProvider());
  if (provider === behind(new ProxyTracerProvider())) return undefined;
  return {
    tracer: trace.getTracer(SCOPE),
    propagator: propagation,
    // The operator's application may still use the SDK, so it is only flushed.
    shutdown: async () => (provider as { forceFlush?(): Promise<void> }).forceFlush?.(),
  };
}

const behind = (provider: TracerProvider): TracerProvider =>
  'getDelegate' in provider ? (provider as ProxyTracerProvider).getDelegate() : provider;
