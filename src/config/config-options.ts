import type { AuditOptions, VersionOptions } from '#contract';
import { type Config, isBuiltIn } from './settings.ts';

/** Options of the configured provider. */
export function providerOptions(config: Config): unknown {
  const { provider, mapping, ingestion, options = {} } = config;
  if (!isBuiltIn(provider)) return options;
  if (provider !== 'postgres') return config[provider];
  const postgres = { ...config.postgres, ingestion };
  const { preset, ...rest } = mapping;
  return preset === undefined ? postgres : { ...postgres, mapping: { preset, ...rest } };
}

/** Queued texts and cached query vectors of one process. */
const EMBEDDING_LIMITS = { max_waiting: 1_000, cache_size: 10_000 };

/** Options of the embedder that `embedding.kind` names. Keyword search has no embedder. */
export function embeddingOptions({ embedding }: Config) {
  const { kind, model, dimensions, base_url, api_key = '', timeout_ms, batch_size, workers } = embedding;
  if (kind === 'local') return { kind, workers, ...EMBEDDING_LIMITS };
  return { kind, model, dimensions, base_url, api_key, timeout_ms, batch_size, ...EMBEDDING_LIMITS };
}

/** Which tokens are accepted; undefined: none. Issuer and audience are set whenever `jwks_url` is. */
export function tokenOptions({ jwt: { jwks_url, issuer, audience, ...rest } }: Config) {
  if (jwks_url === undefined || issuer === undefined || audience === undefined) return undefined;
  return { jwks_url, issuer, audience, ...rest };
}

export function rateLimitOptions({ rate_limit, postgres: { url, schema } }: Config) {
  return {
    requests_per_minute: rate_limit.per_minute,
    failures_per_minute: rate_limit.auth_failures_per_minute,
    store: rate_limit.store,
    postgres: url === undefined ? undefined : { url, schema },
    redis_url: rate_limit.redis_url,
  };
}

/** The limits of users; undefined: there are none. */
export function userLimitOptions({ user_limits }: Config) {
  const { memories = null, bytes = null, adds_per_day = null, overrides } = user_limits;
  const limits = { memories, bytes, adds_per_day, overrides };
  return [memories, bytes, adds_per_day].some((one) => one !== null) || overrides.length > 0 ? limits : undefined;
}

/** The part of the audit settings that the provider needs; undefined: it records nothing. */
export function auditOptions({ audit: { record, retention_days, erased_users } }: Config): AuditOptions | undefined {
  if (record === 'off') return undefined;
  return { retention_days: retention_days === 0 ? null : retention_days, erased_users };
}

/** How versions are kept; undefined: they are not. */
export function versionOptions({ versions: { keep, max, retention_days } }: Config): VersionOptions | undefined {
  if (keep === 'off') return undefined;
  return { max, retention_days: retention_days === 0 ? null : retention_days };
}

export function telemetryOptions({ metrics, tracing: { url, ...rest } }: Config) {
  return { metrics: metrics.port !== undefined, tracing: url === undefined ? undefined : { url, ...rest } };
}
