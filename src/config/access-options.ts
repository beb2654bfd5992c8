import type { Config } from './schema.ts';

/** Which tokens are accepted; undefined: none. Issuer and audience are there whenever `jwks_url` is. */
export function tokenOptions({ jwt: { jwks_url, issuer, audience, ...rest } }: Config) {
  if (jwks_url === undefined || issuer === undefined || audience === undefined) return undefined;
  return { jwks_url, issuer, audience, ...rest };
}

/** What rate limits are opened with. */
export function rateLimitOptions({ rate_limit, postgres: { url, schema } }: Config) {
  return {
    requests_per_minute: rate_limit.per_minute,
    failures_per_minute: rate_limit.auth_failures_per_minute,
    store: rate_limit.store,
    postgres: url === undefined ? undefined : { url, schema },
    redis_url: rate_limit.redis_url,
  };
}

/** What of the audit log the provider is to know; undefined: it records nothing. */
export function auditOptions({ audit: { record, retention_days } }: Config) {
  if (record === 'off') return undefined;
  return { retention_days: retention_days === 0 ? null : retention_days };
}
