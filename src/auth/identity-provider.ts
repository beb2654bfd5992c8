import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose';
import { type OmpError, providerError, readAtMost } from '#contract';

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
