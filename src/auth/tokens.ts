import { createHash } from 'node:crypto';
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { type Call, OmpError, providerError, readAtMost } from '#contract';
import { isGrant, toGrants } from '../core/grants.ts';
import type { Principal } from '../core/principal.ts';
import { type Algorithm, refused } from './credentials.ts';
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

const TIMEOUT_MS = 3_000;
/** Of the answer with the keys. */
const MOST_BYTES = 1024 * 1024;
/** How long keys are used without asking again. */
const MAX_AGE_MS = 10 * 60_000;
/** A token with an unknown key id makes us ask again, but no sooner than this after the last answer. */
const COOLDOWN_MS = 30_000;
/** The same after a failure. */
const REST_MS = 5_000;

/**
 * The public keys of an identity provider. Rejects with `provider_error` when they cannot be had, with an error of the
 * library when they can and the one asked for is not among them.
 */
export function openIdentityProvider(jwksUrl: string): JWTVerifyGetKey {
  let restUntil = 0;
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: TIMEOUT_MS,
    cacheMaxAge: MAX_AGE_MS,
    cooldownDuration: COOLDOWN_MS,
    [customFetch]: async (url: string, init: RequestInit) => {
      // The library spares a provider that answers; one that fails would be asked for every token.
      if (performance.now() < restUntil) throw new Error('the identity provider failed a moment ago');
      const response = await fetch(url, init);
      const body = response.body ? await readAtMost(response.body, MOST_BYTES) : null;
      return new Response(body, response);
    },
  });
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      if (performance.now() >= restUntil) restUntil = performance.now() + REST_MS;
      throw unavailable(error);
    }
  };
}

const unavailable = (cause: unknown): OmpError =>
  providerError('jwks', 'the keys of the identity provider cannot be had at the moment', cause);
