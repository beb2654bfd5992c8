import type { Context, MiddlewareHandler } from 'hono';
import { OmpError } from '#contract';
import type { RateLimiter } from '../core/rate-limiter.ts';
import type { Env } from './call.ts';

/**
 * Counts every request of whom `keyOf` names, and says in headers what is left (Decision 17). `Reset`, as
 * `t`, is in seconds from now. Without a limiter there is no limit, and no header.
 */
export function limitRequests(
  limiter: RateLimiter | undefined,
  keyOf: (c: Context<Env>) => string,
): MiddlewareHandler<Env> {
  if (!limiter) return (_, next) => next();
  const limit = String(limiter.limit);
  const policy = `"default";q=${limit};w=60`;
  return async (c, next) => {
    const { allowed, remaining, reset } = await limiter.take(keyOf(c));
    c.header('ratelimit-policy', policy);
    c.header('ratelimit', `"default";r=${remaining};t=${reset}`);
    c.header('x-ratelimit-limit', limit);
    c.header('x-ratelimit-remaining', String(remaining));
    c.header('x-ratelimit-reset', String(reset));
    if (!allowed) throw tooMany(`more than ${limit} requests in a minute`, reset);
    return next();
  };
}

/** The gateway's own refusal, hence without a provider. */
export const tooMany = (what: string, reset: number): OmpError =>
  new OmpError('rate_limited', `${what}; retry in ${reset} s`, { retryAfter: reset });
