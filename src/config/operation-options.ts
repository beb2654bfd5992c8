import type { Config } from './schema.ts';

/** What is told about the gateway, and to whom. */
export function telemetryOptions({ metrics, tracing: { url, ...rest } }: Config) {
  return { metrics: metrics.port !== undefined, tracing: url === undefined ? undefined : { url, ...rest } };
}
