import type { Call, ProviderCapabilities } from '#contract';
import type { AuditTrail } from './audit-trail.ts';
import { describe } from './describe.ts';
import type { Memories } from './memories.ts';
import type { Principal } from './principal.ts';
import { type Verbs, verbsFor } from './verbs.ts';

/** All that HTTP ever gets of a provider: facts, and the verbs of one caller. */
export interface Gate {
  readonly provider: string;
  readonly capabilities: ProviderCapabilities;
  /** The public capability document. */
  readonly description: ReturnType<typeof describe>;
  verbs(principal: Principal): Verbs;
  /** Throws unless the backend answers. */
  ping(call: Call): Promise<void>;
}

export interface GateOptions {
  /** Already composed. */
  readonly provider: Memories;
  readonly trail: AuditTrail;
  /** What the gateway enforces; null: no limit. */
  readonly rate_limit_per_minute: number | null;
}

export function createGate({ provider, trail, rate_limit_per_minute }: GateOptions): Gate {
  // A principal is kept by whoever authenticated it, for as long as it is used.
  const known = new WeakMap<Principal, Verbs>();
  return {
    provider: provider.name,
    capabilities: provider.capabilities,
    description: describe(provider, rate_limit_per_minute),
    verbs(principal) {
      const before = known.get(principal);
      if (before) return before;
      const verbs = verbsFor(principal, provider, trail);
      known.set(principal, verbs);
      return verbs;
    },
    ping: provider.ping,
  };
}
