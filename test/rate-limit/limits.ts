import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { onTestFinished } from 'vitest';
import { compose } from '../../src/core/compose.ts';
import type { RateLimiter } from '../../src/core/rate-limiter.ts';
import { type AppOptions, createApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { openRateLimits, type RateLimitOptions } from '../../src/rate-limit/rate-limits.ts';
import { openProvider } from '../../src/registry.ts';
import { clientOf } from '../support/client.ts';
import { APP_LIMITS, gateOn, RECORDED, recordingLog } from '../support/subject.ts';

/** The store of a test. */
export type Where = Pick<RateLimitOptions, 'store'> & Partial<Pick<RateLimitOptions, 'postgres' | 'redis_url'>>;

/** A store is too slow when the test says so (`holdTimers`), not because the machine is busy. */
export const HELD_MS = 3_599_999;

/** Rate limits like those of a gateway, with their log; closed after the test. */
export async function openLimits(where: Where, options: Partial<RateLimitOptions> = {}) {
  const log = recordingLog();
  const limits = await openRateLimits({
    requests_per_minute: 10,
    failures_per_minute: 0,
    postgres: undefined,
    redis_url: undefined,
    log,
    wait_ms: HELD_MS,
    ...where,
    ...options,
  });
  onTestFinished(() => limits.close());
  return { ...limits, requests: limits.requests as RateLimiter, lines: log.lines };
}

/** A caller without requests. */
export const freshKey = (): string => `key:${randomUUID()}`;

/** How many of the requests are admitted, sent concurrently and distributed over the limiters. */
export async function admitted(limiters: readonly RateLimiter[], key: string, requests: number): Promise<number> {
  const taken = await Promise.all(
    Array.from({ length: requests }, (_, i) => (limiters[i % limiters.length] as RateLimiter).take(key)),
  );
  return taken.filter(({ allowed }) => allowed).length;
}

/** Serves the memory provider behind a real socket; closed after the test. */
export async function startLimited(
  options: Pick<AppOptions, 'authenticator' | 'rate' | 'trusted_proxies'>,
  host = '127.0.0.1',
) {
  const log = recordingLog();
  const ranking = { mode: 'keyword', keyword_weight: 1 } as const;
  const context = { embedder: undefined, ranking, audit: RECORDED, data_dir: tmpdir(), log };
  const provider = compose(await openProvider('memory', { scopes: 'native' }, context), context);
  const rate_limit_per_minute = options.rate?.requests?.limit ?? null;
  const { gate, auditQueue } = gateOn(provider, log, { rate_limit_per_minute });
  const { port, close } = await listen(createApp({ gate, log, ...APP_LIMITS, ...options }), {
    ...APP_LIMITS,
    host,
    port: 0,
    log,
  });
  onTestFinished(async () => {
    await close();
    await auditQueue.close();
    await provider.close();
  });
  return { port, client: clientOf((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)) };
}
