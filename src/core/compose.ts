import type { Embedder, EmbeddingUsage, Log, Provider, ProviderCapabilities } from '#contract';
import { emulateScopes, rejectScopes } from './emulated-scopes.ts';
import type { Store } from './store.ts';
import type { Protection } from './telemetry.ts';
import { dropOrigins, rejectUnkept } from './unkept-fields.ts';
import { withEmbedder } from './with-embedder.ts';
import { withGuard } from './with-guard.ts';

const withScopes: Readonly<Record<ProviderCapabilities['scopes'], (provider: Provider) => Provider>> = {
  native: (provider) => provider,
  tags: emulateScopes,
  none: rejectScopes,
};

export interface ComposeOptions {
  /** Undefined: there are no vectors. */
  readonly embedder: Embedder | undefined;
  readonly log: Log;
  readonly protection?: Protection;
  /** The name of the store in errors, metrics and traces; default: the provider's. */
  readonly name?: string;
  /** What embedders have used since the last call, to be kept by this store. Undefined: it keeps nothing. */
  readonly takeUsage?: (() => readonly EmbeddingUsage[]) | undefined;
}

/**
 * All decorators of a provider, innermost first: no origins, if it keeps no `x-` keys; scopes, if the backend has none; fields that it
 * does not keep, unless it has a check; then errors, deadlines, traces, retries and circuit breaker; then vectors and idempotency.
 * Outside of them stand mounts, origins and `Access`, which applies the grants of a caller (docs/contributing.md draws them). Called once, at the
 * start. (A read replica is part of the Postgres provider.)
 */
export const compose = (provider: Provider, { embedder, log, protection, name, takeUsage }: ComposeOptions): Store => {
  const scopedProvider = withScopes[provider.capabilities.scopes](dropOrigins(provider));
  const keptProvider = provider.check ? scopedProvider : rejectUnkept(scopedProvider);
  return withEmbedder(withGuard(keptProvider, protection, name), embedder, log, takeUsage);
};
