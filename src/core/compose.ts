import type { Provider, ProviderCapabilities } from '#contract';
import { type Instrument, uninstrumented } from './telemetry.ts';
import { withGuard } from './with-guard.ts';
import { withScopes } from './with-scopes.ts';
import { withoutScopes } from './without-scopes.ts';

const SCOPED: Readonly<Record<ProviderCapabilities['scopes'], (provider: Provider) => Provider>> = {
  native: (provider) => provider,
  tags: withScopes,
  none: withoutScopes,
};

/** Adds the decorators that every provider gets, innermost first. Called once, at startup. */
export const compose = (provider: Provider, instrument: Instrument = uninstrumented): Provider =>
  withGuard(SCOPED[provider.capabilities.scopes](provider), instrument);
