/** Who may send requests: pages of which origins, to which `Host`, with which credential. */
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { invalidRequest, OmpError } from '#contract';
import { ANONYMOUS, type Authenticator } from '../core/grants.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import type { Gate } from '../verbs/gate.ts';
import { rateLimited } from './limits.ts';
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
    try {
      const principal = await authenticator.authenticate(credential, call);
      call.caller = principal.id === ANONYMOUS.id ? { id: `address:${addressOf(c)}`, app: null } : principal;
      c.set('principal', principal);
      c.set('session', gate.session(principal));
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

/**
 * The text after `Bearer` or, from mem0's client, `Token`, even if it cannot be a credential: then it is rejected as an
 * invalid one. Without such a scheme, `X-API-Key`: proxies use either header for their own purposes, and clients send only
 * one credential.
 */
export function credentialOf(c: Context<Env>): string | undefined {
  const scheme = c.req.path.startsWith('/compat/') ? MEM0_SCHEME : SCHEME;
  const bearer = scheme.exec(c.req.header('authorization') ?? '');
  return bearer ? (bearer[1] ?? '') : c.req.header('x-api-key');
}

const SCHEME = /^Bearer(?: +([^ ].*)?)?$/i;
const MEM0_SCHEME = /^(?:Bearer|Token)(?: +([^ ].*)?)?$/i;
