import type { Provider } from '#contract';
import { type Around, bare } from './telemetry.ts';
import { withGuard } from './with-guard.ts';
import { withScopes } from './with-scopes.ts';
import { withoutScopes } from './without-scopes.ts';

/** What the gateway puts around every provider, innermost first. Decided once, at boot. */
export const compose = (provider: Provider, around: Around = bare): Provider => withGuard(scoped(provider), around);

function scoped(provider: Provider): Provider {
  if (provider.capabilities.scopes === 'native') return provider;
  return provider.capabilities.tags ? withScopes(provider) : withoutScopes(provider);
}
