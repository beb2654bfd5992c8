import { createHash } from 'node:crypto';
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { type Call, OmpError, providerError } from '#contract';
import { readAtMost } from '#toolbox';
import type { Principal } from '../core/grants.ts';
import { isGrant, toGrants } from '../core/grants.ts';
import { type Algorithm, invalidCredential } from './credentials.ts';

export interface TokenOptions {
  /** Address of the identity provider's public keys. */
  readonly jwks_url: string;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly Algorithm[];
  /** The claim with the user or users that the token may access. A token without it is rejected. */
  readonly user_claim: string;
  /** The claim with grants, as a list or separated by spaces. Other words in it are ignored. */
  readonly grants_claim?: string | undefined;
  /** Additional grants of every valid token. */
  readonly grants: readonly string[];
}

/** Bearer tokens (JWT) of one identity provider. */
export interface TokenVerifier {
  /** The token's principal. Throws `unauthorized` unless it is valid now, `provider_error` if that is unknown. */
  principal(token: string, call: Call): Promise<Principal>;
}

/** The claim of tokens whose writes are marked (Decision 54). */
const UNTRUSTED_CLAIM = 'omp_untrusted';
/** Its values in other tokens; an identity provider may send it as a text. */
const TRUSTED: readonly unknown[] = [undefined, null, false, 'false'];
const CLOCK_TOLERANCE_S = 5;
/** How long a verified token is cached, in milliseconds: it is rejected after this once its signing key is withdrawn. */
const CACHE_MS = 60_000;
const MAX_CACHED = 10_000;
/** A token can name many users. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;
/** Maximum characters of the subject in logs. */
const MAX_APP = 256;

/** This module loads `jose`: import it only if tokens are configured. */
export function openTokens(options: TokenOptions): TokenVerifier {
  const { issuer, audience, algorithms } = options;
  const keyFor = openIdentityProvider(options.jwks_url);
  /** The keys are digests, so the cache holds no usable token. */
  const cache = new LRUCache<string, { principal: Principal; until: number }>({
    max: MAX_CACHED,
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: ({ principal }) => 500 + 2 * JSON.stringify(principal).length,
  });
  const cachedPrincipal = (digest: string): Principal | undefined => {
    const entry = cache.get(digest);
    return entry && entry.until > Date.now() ? entry.principal : undefined;
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
      // Other properties than the message contain the claims.
      throw invalidCredential(error instanceof Error ? error.message : String(error));
    });
    const principal = principalOf(payload, options);
    const expires = (payload.exp as number) * 1_000;
    cache.set(digest, { principal, until: Math.min(expires, Date.now() + CACHE_MS) });
    return principal;
  };

  return {
    async principal(token, call) {
      const digest = digestOf(token);
      const principal = cachedPrincipal(digest);
      if (principal) return principal;
      const verification = verify(token, digest);
      return call.unlessAborted(verification);
    },
  };
}

function principalOf(payload: JWTPayload, { issuer, user_claim, grants_claim, grants }: TokenOptions): Principal {
  const { sub } = payload;
  if (!isName(sub)) throw invalidCredential('the token names no subject');
  const claim = payload[user_claim];
  const users: unknown[] = Array.isArray(claim) ? claim : [claim];
  if (users.length === 0 || !users.every(isName)) throw invalidCredential('the token names no user');
  const words = grants_claim === undefined ? [] : wordsOf(payload[grants_claim]);
  return {
    id: `token:${digestOf(`${issuer}\0${sub}`)}`,
    app: [...sub].slice(0, MAX_APP).join(''),
    users,
    grants: toGrants([...grants, ...words.filter(isGrant)]),
    ...(!TRUSTED.includes(payload[UNTRUSTED_CLAIM]) && { untrusted: true }),
  };
}

/** Backends reject NUL and lone surrogates. */
const isName = (claim: unknown): claim is string =>
  typeof claim === 'string' && /\S/.test(claim) && claim.isWellFormed() && !claim.includes('\0');

function wordsOf(claim: unknown): string[] {
  if (typeof claim === 'string') return claim.split(' ');
  return Array.isArray(claim) ? claim.filter((word) => typeof word === 'string') : [];
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

const JWKS_DEADLINE_MS = 3_000;
/** Limit for the response with the keys. */
const MAX_JWKS_BYTES = 1024 * 1024;
/** How long the keys are cached. */
const JWKS_MAX_AGE_MS = 10 * 60_000;
/** A token with an unknown key id fetches the keys again, but only this long after the last response. */
const COOLDOWN_MS = 30_000;
/** How long no request follows a failed one. */
const RETRY_MS = 5_000;

/**
 * The public keys of an identity provider. Rejects with `provider_error` if they are not available, and with an error of
 * the library if none of them matches.
 */
function openIdentityProvider(jwksUrl: string): JWTVerifyGetKey {
  let retryAt = 0;
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: JWKS_DEADLINE_MS,
    cacheMaxAge: JWKS_MAX_AGE_MS,
    cooldownDuration: COOLDOWN_MS,
    [customFetch]: async (url: string, init: RequestInit) => {
      // The library limits requests only after a success; after a failure every token would cause one.
      if (performance.now() < retryAt) throw new Error('the last request to the identity provider failed');
      const response = await fetch(url, init);
      const body = response.body ? await readAtMost(response.body, MAX_JWKS_BYTES) : null;
      return new Response(body, response);
    },
  });
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      if (performance.now() >= retryAt) retryAt = performance.now() + RETRY_MS;
      throw unavailable(error);
    }
  };
}

const unavailable = (cause: unknown): OmpError =>
  providerError('jwks', 'the keys of the identity provider are not available', cause);
