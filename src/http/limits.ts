/** Limits of requests before a route: the address they are counted by, requests in a minute, concurrent requests. */
import type { Context, MiddlewareHandler } from 'hono';
import { OmpError } from '#contract';
import type { RateLimiter } from '../core/rate-limiter.ts';
import { addressMatcher, limitedAddress, plainAddress } from '../rate-limit/addresses.ts';
import type { Env } from './request.ts';

/** The path of requests that may wait. */
const CHANGES = '/changes';

type Outgoing = NonNullable<Env['Bindings']['outgoing']>;

/** Key of requests without a connection, or with a closed one. */
const NO_ADDRESS = 'unknown';

/**
 * Returns the client address that limits count by: an IPv4 address or an IPv6 /64. It is the peer of the connection. If
 * the peer is a trusted proxy (address or range), `X-Forwarded-For` is read from the right, past other trusted proxies;
 * entries further left can be forged and are ignored. If an entry is not an address, the proxy that sent it counts.
 * Throws if a proxy is neither an address nor a range.
 */
export function addressReader(trustedProxies: readonly string[]): (c: Context<Env>) => string {
  const isTrusted = addressMatcher(trustedProxies);
  return (c) => {
    let address = plainAddress(c.env?.incoming?.socket.remoteAddress ?? '');
    if (address === undefined) return NO_ADDRESS;
    if (isTrusted(address)) {
      for (const entry of (c.req.header('x-forwarded-for') ?? '').split(',').reverse()) {
        const client = plainAddress(withoutPort(entry.trim()));
        if (client === undefined) break;
        address = client;
        if (!isTrusted(address)) break;
      }
    }
    return limitedAddress(address);
  };
}

/** The key of the caller for its limits. */
export const callerKey = (c: Context<Env>): string => c.get('call').caller.id;

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withoutPort = (entry: string): string =>
  /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/.exec(entry)?.slice(1).join('') ?? entry;

/**
 * Counts every request under the key that `keyOf` returns, and reports what remains in headers (Decision 17). `Reset` and
 * `t` are seconds from now. Without a limiter there is no limit and no header.
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
    if (!allowed) throw rateLimited(`more than ${limit} requests in a minute`, reset);
    return next();
  };
}

/** A limit of the gateway, not of the provider: the error names no provider. */
export const rateLimited = (reason: string, seconds: number): OmpError =>
  new OmpError('rate_limited', `${reason}; retry in ${seconds} s`, { retryAfter: seconds });

/** Default limit for the bytes of all responses that clients have not read yet. */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;

/**
 * Rejects requests beyond `max` concurrent ones at once, instead of making all of them slower. A request counts until the
 * last byte of its response is sent or its connection is closed. If unread responses take more than `maxUnreadBytes`, the
 * connections of the oldest ones are closed.
 */
export function limitConcurrency(max: number, maxUnreadBytes = MAX_UNREAD_BYTES): MiddlewareHandler<Env> {
  /** Responses, oldest first. Not a `Set`: see docs/performance-notes.md. */
  const open: Outgoing[] = [];
  let running = 0;
  let scheduled = false;
  /** At most once in a turn of the event loop: it looks at every open response. */
  const evictSoon = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(evict);
  };
  const evict = () => {
    scheduled = false;
    let unread = 0;
    for (const { writableLength } of open) unread += writableLength;
    for (const outgoing of open) {
      if (unread <= maxUnreadBytes) return;
      unread -= outgoing.writableLength;
      if (outgoing.writableLength > 0) outgoing.destroy();
    }
  };
  return async (c, next) => {
    if (running >= max) throw rateLimited(`more than ${max} concurrent requests`, 1);
    running++;
    const { outgoing } = c.env ?? {};
    if (outgoing) {
      open.push(outgoing);
      outgoing.once('close', () => {
        running--;
        open.splice(open.indexOf(outgoing), 1);
      });
    }
    try {
      await next();
    } finally {
      if (!outgoing) running--;
      // The response is written after this middleware returns.
      else evictSoon();
    }
  };
}

/** Rejects requests beyond `max` concurrent ones of the same caller, so that other callers have room. */
export function limitConcurrencyPerCaller(max: number, callerOf: (c: Context<Env>) => string): MiddlewareHandler<Env> {
  const running = new Map<string, number>();
  const add = (caller: string, amount: 1 | -1) => {
    const count = (running.get(caller) ?? 0) + amount;
    if (count > 0) running.set(caller, count);
    else running.delete(caller);
  };
  return (c, next) => {
    const caller = callerOf(c);
    if ((running.get(caller) ?? 0) >= max) throw rateLimited(`more than ${max} concurrent requests of one caller`, 1);
    add(caller, 1);
    const { incoming, outgoing } = c.env ?? {};
    // A request counts until its response is sent. If the connection is closed already, `close` is not emitted again.
    if (outgoing && !incoming?.socket.destroyed) {
      outgoing.once('close', () => add(caller, -1));
      return next();
    }
    return next().finally(() => add(caller, -1));
  };
}

/** Requests that may wait for changes have limits of their own: waiting takes no place from work. */
export const unlessFollowing =
  (limit: MiddlewareHandler<Env>, following: MiddlewareHandler<Env>): MiddlewareHandler<Env> =>
  (c, next) =>
    c.req.path === CHANGES ? following(c, next) : limit(c, next);
