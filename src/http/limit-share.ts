import type { Context, MiddlewareHandler } from 'hono';
import { OmpError } from '#contract';
import type { Env } from './call.ts';

/** Refuses what one caller asks on top of so many requests at once, so that the others have room. */
export function limitShare(most: number, callerOf: (c: Context<Env>) => string): MiddlewareHandler<Env> {
  const working = new Map<string, number>();
  const add = (caller: string, amount: 1 | -1) => {
    const count = (working.get(caller) ?? 0) + amount;
    if (count > 0) working.set(caller, count);
    else working.delete(caller);
  };
  return async (c, next) => {
    const caller = callerOf(c);
    if ((working.get(caller) ?? 0) >= most) {
      const message = `more than ${most} requests of one caller at once; retry in 1 s`;
      throw new OmpError('rate_limited', message, { retryAfter: 1 });
    }
    add(caller, 1);
    const { incoming, outgoing } = c.env ?? {};
    // Until its last byte has gone, or its client. Of a connection that is closed already, `close` never comes.
    if (outgoing && !incoming?.socket.destroyed) {
      outgoing.once('close', () => add(caller, -1));
      return next();
    }
    try {
      await next();
    } finally {
      add(caller, -1);
    }
  };
}
