import { z } from 'zod';
import { milliseconds, settingFacts, text } from './facts.ts';

const WITH_METRICS = ['metrics.port'] as const;
const WITH_TRACING = ['tracing.url'] as const;

/** How the gateway bears with what it depends on. */
export const resilience = z.strictObject({
  retries: z.int().min(0).max(10).default(2).register(settingFacts, {
    env: 'OMP_RETRIES',
    description: 'How often a read, or what is known not to have happened, is tried again within a request',
  }),
  breaker_failures: z.int().min(1).max(1000).default(5).register(settingFacts, {
    env: 'OMP_BREAKER_FAILURES',
    description: 'Failures in a row after which the backend or the embedding service is left alone until it answers',
  }),
  probe_ms: milliseconds.default(500).register(settingFacts, {
    env: 'OMP_PROBE_MS',
    description: 'How often what is left alone is asked whether it answers again, in milliseconds',
  }),
});

/** Measures for Prometheus, and what an orchestrator asks, on a port of their own. */
export const metrics = z.strictObject({
  port: z.int().min(0).max(65_535).optional().register(settingFacts, {
    env: 'OMP_METRICS_PORT',
    description: 'Port for /metrics, /livez and /readyz, open to whoever reaches it; unset: no metrics',
    example: 9464,
  }),
  host: text.default('127.0.0.1').register(settingFacts, {
    env: 'OMP_METRICS_HOST',
    description: 'Address to listen on for metrics; 0.0.0.0 or :: is every interface',
    only: WITH_METRICS,
  }),
});

/** The names are those of OpenTelemetry where it has one. */
export const tracing = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .register(settingFacts, {
      env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      description: 'Collector that takes traces as OTLP over HTTP; unset: none are made',
      allowed: 'an http:// or https:// URL',
      example: 'http://localhost:4318',
    }),
  service_name: text.default('omp-gateway').register(settingFacts, {
    env: 'OTEL_SERVICE_NAME',
    description: 'What traces call this gateway',
    only: WITH_TRACING,
  }),
  ratio: z.number().min(0).max(1).default(1).register(settingFacts, {
    env: 'OMP_TRACING_RATIO',
    description: 'Share of the requests that is traced, where the caller has not decided',
    only: WITH_TRACING,
  }),
});
