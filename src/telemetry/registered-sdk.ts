import { ProxyTracerProvider, propagation, type TracerProvider, trace } from '@opentelemetry/api';
import { SCOPE } from './spans.ts';
import type { Sdk } from './tracing-sdk.ts';

/** The SDK that the operator has loaded before the gateway (`node --import`), which is theirs to configure. */
export function registeredSdk(): Sdk | undefined {
  const provider = behind(trace.getTracerProvider());
  if (provider === behind(new ProxyTracerProvider())) return undefined;
  return {
    tracer: trace.getTracer(SCOPE),
    propagator: propagation,
    // It stays theirs: it may have more to send than what comes from here.
    shutdown: async () => (provider as { forceFlush?(): Promise<void> }).forceFlush?.(),
  };
}

const behind = (provider: TracerProvider): TracerProvider =>
  'getDelegate' in provider ? (provider as ProxyTracerProvider).getDelegate() : provider;
