import { createHistogram } from 'node:perf_hooks';
import autocannon from 'autocannon';
import type { Request } from './workload.ts';

export interface LoadOptions {
  readonly connections: number;
  /** 'once': until each request was sent once. */
  readonly seconds: number | 'once';
}

/** The result of one run, over every response. Latencies in milliseconds. */
export interface Load {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** How often autocannon checks whether to stop; its default of a second would lengthen every run. */
const STOP_INTERVAL_MS = 50;

/**
 * Sends the requests, repeatedly if there is time, each connection a share of them and one at a time. Rejects if a response is
 * not a success: a fast error is no result. Measures latencies itself, because autocannon rounds them to milliseconds.
 */
export async function load(url: string, requests: readonly Request[], options: LoadOptions): Promise<Load> {
  const { connections, seconds } = options;
  const microseconds = createHistogram();
  let refused = 0;
  let connection = 0;
  const started = performance.now();
  let ended = started;
  const { errors } = await autocannon({
    url,
    connections,
    ...(seconds === 'once' ? { amount: requests.length } : { duration: seconds }),
    sampleInt: STOP_INTERVAL_MS,
    setupClient(client) {
      const share = connection++;
      client.setRequests(
        requests.filter((_, index) => index % connections === share).map((request) => ({ ...request })),
      );
      client.on('response', (status, _bytes, milliseconds) => {
        if (status >= 300) refused++;
        microseconds.record(Math.max(1, Math.round(milliseconds * 1_000)));
        ended = performance.now();
      });
    },
  });
  if (refused + errors > 0 || microseconds.count === 0) {
    throw new Error(`of ${microseconds.count} requests to ${url}, ${refused} were refused and ${errors} failed`);
  }
  return {
    perSecond: microseconds.count / ((ended - started) / 1_000),
    p50: microseconds.percentile(50) / 1_000,
    p99: microseconds.percentile(99) / 1_000,
  };
}
