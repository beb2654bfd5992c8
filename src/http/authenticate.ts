import type { Context, MiddlewareHandler } from 'hono';
import { OmpError } from '#contract';
import type { Gate } from '../core/gate.ts';
import type { Authenticator } from '../core/principal.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import type { Env } from './call.ts';
import { tooMany } from './rate-limit.ts';

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
