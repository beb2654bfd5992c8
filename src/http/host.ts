import type { MiddlewareHandler } from 'hono';
import { invalidRequest } from '#contract';
import type { Env } from './call.ts';

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
