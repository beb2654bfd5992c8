import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { invalidRequest, OmpError } from '#contract';
import type { Gate } from '../core/gate.ts';
import type { Authenticator } from '../core/principal.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import { addressMatcher, limitedAddress, plainAddress } from '../rate-limit/addresses.ts';
import type { Env } from './request.ts';

/** What a gateway that only this machine can reach is called by. */
export const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Admits requests whose `Host` is one of these names, or one of them and a port. A page that lets its own name point at
 * this machine (DNS rebinding) is of the same origin as the gateway as far as its browser can tell; only the name it
 * must send gives it away. An IPv6 address may be given with or without brackets.
 */
export function requireHost(allowed: readonly string[]): MiddlewareHandler<Env> {
  const known = new Set(allowed.map(canonical));
  return async (c, next) => {
    const host = canonical(c.req.header('host') ?? '');
    if (!known.has(host) && !known.has(host.replace(/:\d*$/, ''))) {
      throw invalidRequest(
        'Host: this gateway is not reached by this name; OMP_ALLOWED_HOSTS lists those that it is reached by',
      );
    }
    return next();
  };
}

const canonical = (name: string): string =>
  (/^[\da-f.]*:[\da-f.]*:[\da-f:.]*$/i.test(name) ? `[${name}]` : name).toLowerCase();

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

/** Of a request that came without a connection, or whose connection is gone. */
const NO_ADDRESS = 'unknown';

/**
 * Tells from where a request comes, for counting: an IPv4 address or an IPv6 /64. That is the connection's other end;
 * where that is one of the trusted proxies (addresses and ranges), it is whom `X-Forwarded-For` names, read from the
 * right past other trusted ones. What stands further left was written by anybody and is not looked at; of an entry
 * that is no address, the proxy that passed it on is taken. Throws when a proxy is neither address nor range.
 */
export function addressReader(trustedProxies: readonly string[]): (c: Context<Env>) => string {
  const isTrusted = addressMatcher(trustedProxies);
  return (c) => {
    let address = plainAddress(c.env?.incoming?.socket.remoteAddress ?? '');
    if (address === undefined) return NO_ADDRESS;
    if (isTrusted(address)) {
      for (const entry of (c.req.header('x-forwarded-for') ?? '').split(',').reverse()) {
        const forwarded = plainAddress(withoutPort(entry.trim()));
        if (forwarded === undefined) break;
        address = forwarded;
        if (!isTrusted(address)) break;
      }
    }
    return limitedAddress(address);
  };
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withoutPort = (entry: string): string =>
  /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/.exec(entry)?.slice(1).join('') ?? entry;

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

export interface AuthenticateOptions {
  readonly gate: Gate;
  readonly authenticator: Authenticator;
  /** Counts failed authentications of each client address, without a credential apart; undefined: any number may fail. */
  readonly failures: RateLimiter | undefined;
  /** What is counted as one client. */
  readonly addressOf: (c: Context<Env>) => string;
}

/**
 * Lets a request on with its caller's verbs, which are the only way to any memory (Decision 13).
 *
 * Every credential is verified, also from an address with too many failures: a good one works whoever else shares the
 * address. What the limit withholds is the answer to a wrong one. Requests without a credential are counted apart.
 */
export const authenticate =
  ({ gate, authenticator, failures, addressOf }: AuthenticateOptions): MiddlewareHandler<Env> =>
  async (c, next) => {
    const credential = credentialOf(c);
    const call = c.get('call');
    try {
      const principal = await authenticator.authenticate(credential, call);
      call.caller = principal;
      c.set('verbs', gate.verbs(principal));
    } catch (error) {
      if (failures && error instanceof OmpError && error.code === 'unauthorized') {
        const { allowed, reset } = await failures.take(
          `${credential === undefined ? 'anonymous:' : ''}${addressOf(c)}`,
        );
        if (!allowed) throw tooMany('too many failed authentications from this address', reset);
      }
      throw error;
    }
    return next();
  };

/**
 * What follows `Bearer`, also when that cannot be a credential: then it is refused as a wrong one. Without that scheme
 * `X-API-Key`: proxies on the way have their own uses for either header, and no client sends two of its own.
 */
function credentialOf(c: Context<Env>): string | undefined {
  const bearer = /^Bearer(?: +([^ ].*)?)?$/i.exec(c.req.header('authorization') ?? '');
  return bearer ? (bearer[1] ?? '') : c.req.header('x-api-key');
}
