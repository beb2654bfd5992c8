import type { MiddlewareHandler } from 'hono';
import { OmpError } from '#contract';
import type { Env } from './call.ts';

type Outgoing = NonNullable<Env['Bindings']['outgoing']>;

/** Of answers that clients have not taken yet, in all. */
const MOST_UNREAD_BYTES = 128 * 1024 * 1024;

/**
 * Refuses what comes on top of so many requests at once, instead of letting everybody wait longer and longer. One counts
 * until the last byte of its answer is gone, or its connection. `mostUnread`: where answers that wait for their clients
 * take more bytes, the oldest of them are given up, with their connections.
 */
export function limitAtOnce(most: number, mostUnread = MOST_UNREAD_BYTES): MiddlewareHandler<Env> {
  /** Oldest first. */
  const open = new Set<Outgoing>();
  let working = 0;
  const evict = () => {
    let unread = 0;
    for (const { writableLength } of open) unread += writableLength;
    for (const outgoing of open) {
      if (unread <= mostUnread) return;
      unread -= outgoing.writableLength;
      if (outgoing.writableLength > 0) outgoing.destroy();
    }
  };
  return async (c, next) => {
    evict();
    if (working >= most) {
      throw new OmpError('rate_limited', `more than ${most} requests at once; retry in 1 s`, { retryAfter: 1 });
    }
    working++;
    const { outgoing } = c.env ?? {};
    if (outgoing) {
      open.add(outgoing);
      outgoing.once('close', () => {
        working--;
        open.delete(outgoing);
      });
    }
    try {
      await next();
    } finally {
      if (!outgoing) working--;
      // The answer is written after this.
      else setImmediate(evict);
    }
  };
}
