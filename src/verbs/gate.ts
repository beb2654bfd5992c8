import { type Call, OmpError, type ProviderCapabilities } from '#contract';
import { Access, type Resources } from '../core/access.ts';
import type { Principal } from '../core/principal.ts';
import { createReadShares } from '../core/read-shares.ts';
import type { Scrape } from '../core/telemetry.ts';
import { describe } from './capabilities.ts';
import { type Session, sessionOf } from './verb.ts';

/** The only access of other interfaces, such as HTTP, to a store: its facts, and the session of one caller. */
export interface Gate {
  readonly provider: string;
  readonly capabilities: ProviderCapabilities;
  /** `Resources.max_record_bytes`. */
  readonly max_record_bytes: number;
  /** The public capability document. */
  readonly description: ReturnType<typeof describe>;
  /** The sessions of one caller share its shares of memory and time. */
  session(principal: Principal): Session;
  /**
   * Metrics as text (Decision 33). Throws `scope_denied` unless the caller may read the memories of all users: metrics are
   * about them all.
   */
  metrics(principal: Principal): ReturnType<Scrape>;
  /** Throws if the backend does not answer. */
  ping(call: Call): Promise<void>;
}

export interface GateOptions extends Omit<Resources, 'shares'> {
  /** Undefined: metrics are not collected. */
  readonly scrape?: Scrape | undefined;
  /** The rate limit of the gateway; null: none. */
  readonly rate_limit_per_minute: number | null;
}

export function createGate({ rate_limit_per_minute, ...options }: GateOptions): Gate {
  const { store } = options;
  const resources = { ...options, shares: createReadShares() };
  // The authenticator keeps a principal for as long as it is used.
  const sessions = new WeakMap<Principal, Session>();
  return {
    provider: store.name,
    capabilities: store.capabilities,
    max_record_bytes: options.max_record_bytes,
    description: describe(store, rate_limit_per_minute),
    session(principal) {
      const known = sessions.get(principal);
      if (known) return known;
      const session = sessionOf(new Access(principal, resources));
      sessions.set(principal, session);
      return session;
    },
    async metrics({ users, grants }) {
      if (!options.scrape) throw new OmpError('unsupported_capability', NO_METRICS);
      if (users !== null || grants.read !== null) throw new OmpError('scope_denied', METRICS_DENIED);
      return options.scrape();
    },
    ping: store.ping,
  };
}

const NO_METRICS = 'this gateway collects no metrics; set OMP_METRICS_PORT';
const METRICS_DENIED = 'metrics are about all users: they need a key for all users with the grant read:*';
