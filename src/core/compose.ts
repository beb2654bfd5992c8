import type { Provider, ProviderCapabilities } from '#contract';
import { emulateScopes } from './emulated-scopes.ts';
import { rejectScopes } from './rejected-scopes.ts';
import { type Instrument, uninstrumented } from './telemetry.ts';
import { withGuard } from './with-guard.ts';

const SCOPED: Readonly<Record<ProviderCapabilities['scopes'], (provider: Provider) => Provider>> = {
  native: (provider) => provider,
  tags: emulateScopes,
  none: rejectScopes,
};

/** Adds the decorators that every provider gets, innermost first. Called once, at startup. */
export const compose = (provider: Provider, instrument: Instrument = uninstrumented): Provider =>
  withGuard(SCOPED[provider.capabilities.scopes](provider), instrument);
