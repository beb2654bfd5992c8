import { Histogram, type Registry } from 'prom-client';

/** How often it is looked whether the event loop is free, in milliseconds. */
const EVERY_MS = 100;

/**
 * How late a timer is. The gauges of the library have a floor of ten milliseconds, and forget with every scrape; these can be
 * added up over time and over processes. Returns what ends it.
 */
export function watchEventLoop(registry: Registry): () => void {
  const lag = new Histogram({
    name: 'omp_event_loop_lag_seconds',
    help: 'How long what was due had to wait for the event loop, looked at ten times a second.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [registry],
  });
  let due = performance.now() + EVERY_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - due) / 1_000);
    due = now + EVERY_MS;
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}
