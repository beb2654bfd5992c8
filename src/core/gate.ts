import type { Call, ProviderCapabilities } from '#contract';
import { type Verbs, verbsFor } from './access.ts';
import type { AuditQueue } from './audit-queue.ts';
import { describe } from './describe.ts';
import type { Principal } from './principal.ts';
import { createReadShares } from './read-shares.ts';
import type { Scrape } from './telemetry.ts';
import type { Memories } from './with-embedder.ts';

/** The only access of `src/http` to a provider: its facts, and the verbs of one caller. */
export interface Gate {
  readonly provider: string;
  readonly capabilities: ProviderCapabilities;
  /** The public capability document. */
  readonly description: ReturnType<typeof describe>;
  verbs(principal: Principal): Verbs;
  /** Throws if the backend does not answer. */
  ping(call: Call): Promise<void>;
}

export interface GateOptions {
  /** With its decorators (`compose`). */
  readonly provider: Memories;
  readonly auditQueue: AuditQueue;
  /** The rate limit of the gateway; null: none. */
  readonly rate_limit_per_minute: number | null;
  /** Undefined: metrics are not collected. */
  readonly scrape?: Scrape | undefined;
}

export function createGate({ provider, auditQueue, rate_limit_per_minute, scrape }: GateOptions): Gate {
  // The authenticator keeps a principal for as long as it is used.
  const known = new WeakMap<Principal, Verbs>();
  const shares = createReadShares();
  return {
    provider: provider.name,
    capabilities: provider.capabilities,
    description: describe(provider, rate_limit_per_minute),
    verbs(principal) {
      const before = known.get(principal);
      if (before) return before;
      const verbs = verbsFor(principal, { provider, auditQueue, shares, scrape });
      known.set(principal, verbs);
      return verbs;
    },
    ping: provider.ping,
  };
}
