import type { MiddlewareHandler } from 'hono';
import { OmpError } from '#contract';
import type { Env } from './call.ts';

/** Refuses what comes on top of so many requests at once, instead of letting everybody wait longer and longer. */
export function limitAtOnce(most: number): MiddlewareHandler<Env> {
  let working = 0;
  return async (_c, next) => {
    if (working >= most) {
      throw new OmpError('rate_limited', `more than ${most} requests at once; retry in 1 s`, { retryAfter: 1 });
    }
    working++;
    try {
      await next();
    } finally {
      working--;
    }
  };
}
