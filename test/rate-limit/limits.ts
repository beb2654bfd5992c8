import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { RateLimiter } from '../../src/core/rate-limiter.ts';
import { openRateLimits, type RateLimitOptions } from '../../src/rate-limit/rate-limits.ts';
import { recordingLog } from '../support/subject.ts';

/** Where the limits of a test are kept. */
export type Where = Pick<RateLimitOptions, 'store'> & Partial<Pick<RateLimitOptions, 'postgres' | 'redis_url'>>;

/** A store is too slow when a test says so (`holdTimers`), not because the machine is busy. */
export const HELD_MS = 3_599_999;

/** Limits as a gateway opens them, closed after the test, with what they log. */
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

/** A caller nobody has counted yet. */
export const freshKey = (): string => `key:${randomUUID()}`;

/** How many of so many requests, sent at once and in turn to each of the limiters, are admitted. */
export async function admitted(limiters: readonly RateLimiter[], key: string, requests: number): Promise<number> {
  const taken = await Promise.all(
    Array.from({ length: requests }, (_, i) => (limiters[i % limiters.length] as RateLimiter).take(key)),
  );
  return taken.filter(({ allowed }) => allowed).length;
}
