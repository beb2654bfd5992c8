import type { Provider } from '#contract';
import { withGuard } from './with-guard.ts';
import { withScopes } from './with-scopes.ts';

/** What the gateway puts around every provider, innermost first. Decided once, at boot. */
export const compose = (provider: Provider): Provider => withGuard(withScopes(provider));
