import { createHash } from 'node:crypto';
import { type JWTPayload, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { type Call, OmpError } from '#contract';
import { isGrant, toGrants } from '../core/grants.ts';
import type { Principal } from '../core/principal.ts';
import type { Algorithm } from './algorithms.ts';
import { openIdentityProvider } from './identity-provider.ts';
import { refused } from './refusal.ts';
import { waitFor } from './waiting.ts';

export interface TokenOptions {
  /** Where the identity provider publishes its keys. */
  readonly jwks_url: string;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly Algorithm[];
  /** The claim that names the user, or a list of users, that a token is bound to. A token without it is refused. */
  readonly user_claim: string;
  /** The claim that holds grants, a list or a text separated by spaces. Words in it that are no grants are passed over. */
  readonly grants_claim?: string | undefined;
  /** Given to every valid token in addition. */
  readonly grants: readonly string[];
}

/** Bearer tokens (JWT) of one identity provider. */
export interface Tokens {
  /** Whom the token speaks for. Throws `unauthorized` when it is not good now, `provider_error` when that cannot be said. */
  principal(token: string, call: Call): Promise<Principal>;
}

const CLOCK_TOLERANCE_S = 5;
/** A token that the identity provider no longer vouches for, its key withdrawn, is refused after this. */
const REMEMBERED_MS = 60_000;
const MOST_REMEMBERED = 10_000;
/** A token may name many users. */
const MOST_REMEMBERED_BYTES = 32 * 1024 * 1024;
const MAX_APP = 256;

/** Loads a library: import this only where tokens are configured. */
export function openTokens(options: TokenOptions): Tokens {
  const { issuer, audience, algorithms } = options;
  const keyFor = openIdentityProvider(options.jwks_url);
  /** By digest: what is remembered is of no use to whoever reads it. */
  const verified = new LRUCache<string, { principal: Principal; until: number }>({
    max: MOST_REMEMBERED,
    maxSize: MOST_REMEMBERED_BYTES,
    sizeCalculation: ({ principal }) => 500 + 2 * JSON.stringify(principal).length,
  });
  const remembered = (digest: string): Principal | undefined => {
    const found = verified.get(digest);
    return found && found.until > Date.now() ? found.principal : undefined;
  };

  const verify = async (token: string, digest: string): Promise<Principal> => {
    const { payload } = await jwtVerify(token, keyFor, {
      issuer,
      audience,
      algorithms: [...algorithms],
      requiredClaims: ['exp'],
      clockTolerance: CLOCK_TOLERANCE_S,
    }).catch((error: unknown) => {
      if (error instanceof OmpError) throw error;
      // Of the library's errors only the message: their other properties hold the claims.
      throw refused(error instanceof Error ? error.message : String(error));
    });
    const principal = principalOf(payload, options);
    const expires = (payload.exp as number) * 1_000;
    verified.set(digest, { principal, until: Math.min(expires, Date.now() + REMEMBERED_MS) });
    return principal;
  };

  return {
    async principal(token, call) {
      const digest = digestOf(token);
      return remembered(digest) ?? waitFor(verify(token, digest), call);
    },
  };
}

function principalOf(payload: JWTPayload, { issuer, user_claim, grants_claim, grants }: TokenOptions): Principal {
  const { sub } = payload;
  if (!isName(sub)) throw refused('the token names no subject');
  const claimed = payload[user_claim];
  const users: unknown[] = Array.isArray(claimed) ? claimed : [claimed];
  if (users.length === 0 || !users.every(isName)) throw refused('the token names no user');
  const words = grants_claim === undefined ? [] : wordsOf(payload[grants_claim]);
  return {
    id: `token:${digestOf(`${issuer}\0${sub}`)}`,
    app: [...sub].slice(0, MAX_APP).join(''),
    users,
    grants: toGrants([...grants, ...words.filter(isGrant)]),
  };
}

/** Backends refuse NUL and lone surrogates. */
const isName = (claim: unknown): claim is string =>
  typeof claim === 'string' && /\S/.test(claim) && claim.isWellFormed() && !claim.includes('\0');

function wordsOf(claim: unknown): string[] {
  if (typeof claim === 'string') return claim.split(' ');
  return Array.isArray(claim) ? claim.filter((word) => typeof word === 'string') : [];
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
