/**
 * What a request passes before its route: who may send it (pages of which origins, to which `Host`, with which credential), and
 * how many.
 */
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { invalidRequest, OmpError } from '#contract';
import { ANONYMOUS, type Authenticator } from '../core/grants.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import { addressMatcher, limitedAddress, plainAddress } from '../rate-limit/addresses.ts';
import type { Gate } from '../verbs/gate.ts';
import type { Env } from './request.ts';

/** How long a browser may cache a preflight response, in seconds. Chromium allows no more. */
const PREFLIGHT_MAX_AGE = 7200;

/**
 * Lets pages of these origins call the gateway: exact origins, or `*` for any. Preflight requests are answered here: they
 * carry no credential and reach no route. Cookies are never used, so a page can only send a credential that it holds.
 */
export const allowOrigins = (origins: readonly string[]): MiddlewareHandler<Env> =>
  cors({
    origin: origins.includes('*') ? '*' : [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    allowHeaders: [
      'authorization',
      'content-type',
      'idempotency-key',
      'if-match',
      'if-none-match',
      'last-event-id',
      'mcp-method',
      'mcp-name',
      'mcp-protocol-version',
      'x-api-key',
      'x-consistency-token',
      'x-request-id',
      'x-user-id',
    ],
    exposeHeaders: [
      'etag',
      'x-request-id',
      'x-ignored-fields',
      'x-consistency',
      'x-consistency-token',
      'x-partial',
      'x-without',
      'ratelimit',
      'ratelimit-policy',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'retry-after',
      'www-authenticate',
    ],
    maxAge: PREFLIGHT_MAX_AGE,
  });

/** The names of a gateway that only this machine can reach. */
export const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Admits requests whose `Host` is one of these names, with any port or none. This stops DNS rebinding: a page that
 * resolves its own name to this machine is same-origin for the browser, and only the `Host` header reveals it. IPv6
 * addresses may be given with or without brackets.
 */
export function requireHost(allowedHosts: readonly string[]): MiddlewareHandler<Env> {
  const names = new Set(allowedHosts.map(canonicalHost));
  return (c, next) => {
    const host = canonicalHost(c.req.header('host') ?? '');
    if (!names.has(host) && !names.has(host.replace(/:\d*$/, ''))) {
      throw invalidRequest(
        'Host: this name is not allowed; OMP_ALLOWED_HOSTS lists the allowed names (docs/security.md)',
      );
    }
    return next();
  };
}

/**
 * Admits requests without `Origin`, from these origins, and from pages of this gateway itself. MCP requires it: the endpoint
 * must not rely on browsers alone to keep pages of other sites out.
 */
export function requireOrigin(allowedOrigins: readonly string[]): MiddlewareHandler<Env> {
  return async (c, next) => {
    const origin = c.req.header('origin');
    if (origin === undefined || allowedOrigins.includes('*') || allowedOrigins.includes(origin)) return next();
    if (URL.canParse(origin) && new URL(origin).host === c.req.header('host')?.toLowerCase()) return next();
    throw new OmpError(
      'scope_denied',
      'Origin: pages of this origin may not call /mcp; OMP_CORS_ORIGINS lists those that may',
    );
  };
}

/**
 * Admits what a browser does not mark as sent by a page of another site, what carries a credential, and CORS requests from these
 * origins. A page can send a GET without a credential and without a preflight, such as with an image tag: it cannot read the
 * answer, but an open gateway would do the work.
 */
export function rejectOtherSites(allowedOrigins: readonly string[]): MiddlewareHandler<Env> {
  return (c, next) => {
    const site = c.req.header('sec-fetch-site');
    if (site === undefined || site === 'same-origin' || site === 'none' || allowedOrigins.includes('*')) return next();
    if (credentialOf(c) !== undefined || allowedOrigins.includes(c.req.header('origin') ?? '')) return next();
    throw new OmpError(
      'scope_denied',
      'Sec-Fetch-Site: pages of other sites may not call this gateway; OMP_CORS_ORIGINS lists the origins that may',
    );
  };
}

const canonicalHost = (name: string): string =>
  (/^[\da-f.]*:[\da-f.]*:[\da-f:.]*$/i.test(name) ? `[${name}]` : name).toLowerCase();

export interface AuthenticateOptions {
  readonly gate: Gate;
  readonly authenticator: Authenticator;
  /** Counts failed authentications per client address; those without a credential separately. Undefined: no limit. */
  readonly failures: RateLimiter | undefined;
  readonly addressOf: (c: Context<Env>) => string;
}

/**
 * Authenticates a request and gives it the session of its caller, which is the only way to a memory (Decision 13). On an open
 * gateway every client address is a caller, so that limits and queues tell them apart.
 *
 * Every credential is verified, even from an address with too many failures: a valid one works, even from a shared address.
 * Above the limit only the response to an invalid one changes, from 401 to 429.
 */
export const authenticate =
  ({ gate, authenticator, failures, addressOf }: AuthenticateOptions): MiddlewareHandler<Env> =>
  async (c, next) => {
    const credential = credentialOf(c);
    const call = c.get('call');
    const verify = () => authenticator.authenticate(credential, call);
    try {
      const principal = await verify();
      const isAnonymous = principal.id === ANONYMOUS.id;
      call.authenticated(isAnonymous ? { id: `address:${addressOf(c)}`, app: null } : principal, verify);
      c.set('principal', principal);
      c.set('session', gate.session(principal, wayOf(c.req.path)));
    } catch (error) {
      if (failures && error instanceof OmpError && error.code === 'unauthorized') {
        const { allowed, reset } = await failures.take(
          `${credential === undefined ? 'anonymous:' : ''}${addressOf(c)}`,
        );
        if (!allowed) throw rateLimited('too many failed authentications from this address', reset);
      }
      throw error;
    }
    await next();
  };

const wayOf = (path: string) =>
  path.startsWith('/compat/') ? 'mem0' : path === '/mcp' || path.startsWith('/mcp/') ? 'mcp' : 'http';

/**
 * The text after `Bearer` or, from mem0's client, `Token`, even if it cannot be a credential: then it is rejected as an
 * invalid one. Without such a scheme, `X-API-Key`: proxies use either header for their own purposes, and clients send only
 * one credential.
 */
function credentialOf(c: Context<Env>): string | undefined {
  const scheme = c.req.path.startsWith('/compat/') ? MEM0_SCHEME : SCHEME;
  const bearer = scheme.exec(c.req.header('authorization') ?? '');
  return bearer ? (bearer[1] ?? '') : c.req.header('x-api-key');
}

const SCHEME = /^Bearer(?: +([^ ].*)?)?$/i;
const MEM0_SCHEME = /^(?:Bearer|Token)(?: +([^ ].*)?)?$/i;

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
const rateLimited = (reason: string, seconds: number): OmpError =>
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
  const adjust = (caller: string, amount: 1 | -1) => {
    const count = (running.get(caller) ?? 0) + amount;
    if (count > 0) running.set(caller, count);
    else running.delete(caller);
  };
  return (c, next) => {
    const caller = callerOf(c);
    if ((running.get(caller) ?? 0) >= max) throw rateLimited(`more than ${max} concurrent requests of one caller`, 1);
    adjust(caller, 1);
    const { incoming, outgoing } = c.env ?? {};
    // A request counts until its response is sent. If the connection is closed already, `close` is not emitted again.
    if (outgoing && !incoming?.socket.destroyed) {
      outgoing.once('close', () => adjust(caller, -1));
      return next();
    }
    return next().finally(() => adjust(caller, -1));
  };
}

/** The path of requests that may wait. */
const CHANGES = '/changes';

/** Requests that may wait for changes have limits of their own: waiting takes no place from work. */
export const unlessFollowing =
  (limit: MiddlewareHandler<Env>, following: MiddlewareHandler<Env>): MiddlewareHandler<Env> =>
  (c, next) =>
    c.req.path === CHANGES ? following(c, next) : limit(c, next);
