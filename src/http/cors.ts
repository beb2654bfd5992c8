import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { Env } from './call.ts';

/** How long a browser may remember what it was allowed, in seconds; Chromium remembers no longer. */
const MAX_AGE = 7200;

/**
 * Lets pages of these origins (exact, or `*` for any) call the gateway. A preflight is answered here: it carries no key
 * and reaches nothing. Cookies play no part, so nothing is ever sent along that the page does not hold itself.
 */
export const allowOrigins = (origins: readonly string[]): MiddlewareHandler<Env> =>
  cors({
    origin: origins.includes('*') ? '*' : [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    allowHeaders: [
      'authorization',
      'content-type',
      'idempotency-key',
      'x-api-key',
      'x-consistency-token',
      'x-request-id',
      'x-user-id',
    ],
    exposeHeaders: [
      'x-request-id',
      'x-consistency',
      'x-consistency-token',
      'ratelimit',
      'ratelimit-policy',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'retry-after',
      'www-authenticate',
    ],
    maxAge: MAX_AGE,
  });
