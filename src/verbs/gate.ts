import type { z } from 'zod';
import { type AuditAction, type Call, type Freeze, OmpError, type ProviderCapabilities } from '#contract';
import { Access, type Resources } from '../core/access.ts';
import { type AuditFacts, NO_FACTS } from '../core/audit-queue.ts';
import { cachedAnswer } from '../core/cached-answer.ts';
import { type ChangeFeed, openChangeFeed } from '../core/change-feed.ts';
import { isAllowed, meetDemands } from '../core/demands.ts';
import type { Principal } from '../core/grants.ts';
import { createReadShares } from '../core/read-shares.ts';
import { NO_SERVICES, type Services } from '../core/services.ts';
import type { Store } from '../core/store.ts';
import type { Scrape } from '../core/telemetry.ts';
import type { Feature } from '../features/feature.ts';
import { FEATURES } from '../features/index.ts';
import { describe } from './capabilities.ts';
import { parse, reportIgnored } from './fields.ts';
import { VERB_TABLE } from './index.ts';
import { isSupported, type Verb } from './verb.ts';

/** Runs the verbs of one caller. */
export interface Session {
  /** Throws `unsupported_capability` if the store lacks what the verb needs. */
  require(verb: Pick<Verb, 'name' | 'tag' | 'remedy' | 'writes'>): void;
  /**
   * Throws `invalid_request` that names the first ten invalid fields, and `unsupported_capability` if the store lacks what the verb
   * needs.
   */
  run<Input extends z.ZodObject, Output, Need extends keyof Store, Request>(
    verb: Verb<Input, Output, Need, Request>,
    input: unknown,
    call: Call,
  ): Promise<Output>;
}

/** The only access of other interfaces, such as HTTP, to a store: its facts, and the session of one caller. */
export interface Gate {
  readonly provider: string;
  readonly capabilities: ProviderCapabilities;
  /** `Resources.max_record_bytes`. */
  readonly max_record_bytes: number;
  /** Whether the memory with this id has an `ETag`. */
  hasEtag(id: string): boolean;
  /** The public capability document, but for what changes. */
  readonly description: ReturnType<typeof describe>;
  /** What changes of it. `frozen`: since when the store takes no changes; null: it takes them, or the backend does not answer. */
  state(): Promise<{ readonly frozen: Pick<Freeze, 'since'> | null }>;
  /** One session for each principal and way in; the grants are made ready once. */
  session(principal: Principal, via: 'http' | 'mcp' | 'mem0'): Session;
  /**
   * Metrics as text (Decision 33). Throws `scope_denied` unless the caller may read the memories of all users: metrics are
   * about them all.
   */
  metrics(principal: Principal): ReturnType<Scrape>;
  /** Throws if the backend does not answer. */
  ping(call: Call): Promise<void>;
  readonly feed: Omit<ChangeFeed, 'changed'>;
}

export interface GateOptions extends Omit<Resources, 'shares' | 'feed' | 'services'> {
  /** Default: none. */
  readonly services?: Services;
  /** Undefined: metrics are not collected. */
  readonly scrape?: Scrape | undefined;
  /** The rate limit of the gateway; null: none. */
  readonly rate_limit_per_minute: number | null;
}

/** How long the answer about a freeze is kept, in milliseconds: anyone may ask. */
const FRESH_MS = 1_000;

export function createGate({ rate_limit_per_minute, services = NO_SERVICES, ...options }: GateOptions): Gate {
  const store = FEATURES.reduce(
    (all, { service }: Feature) => (service?.hides && !services.has(service.key) ? without(service.hides, all) : all),
    options.store,
  );
  const { mounts } = store;
  const feed = openChangeFeed(store, options.log);
  const resources = { ...options, services, store, shares: createReadShares(1 + (mounts?.stores.length ?? 0)), feed };
  const description = describe(store, rate_limit_per_minute);
  const supportedVerbs = new Set<unknown>(Object.values<Verb>(VERB_TABLE).filter((verb) => isSupported(verb, store)));
  // The authenticator keeps a principal for as long as it is used.
  const sessions = { http: new WeakMap(), mcp: new WeakMap(), mem0: new WeakMap() } as const satisfies Record<
    string,
    WeakMap<Principal, Session>
  >;
  const freeze = cachedAnswer('capabilities', () => store.freezing?.current, FRESH_MS);
  return {
    provider: store.name,
    capabilities: store.capabilities,
    max_record_bytes: options.max_record_bytes,
    hasEtag: (id) => (mounts ? (mounts.ofId(id)?.store ?? mounts.root) : store).capabilities.etags,
    // An optional store may open later.
    get description() {
      return mounts ? describe(store, rate_limit_per_minute) : description;
    },
    async state() {
      const frozen = await freeze();
      // Who froze it is nothing for the public.
      return { frozen: frozen ? { since: frozen.since } : null };
    },
    session(principal, via) {
      const existing = sessions[via].get(principal);
      if (existing) return existing;
      const session = sessionOf(new Access(principal, via, resources), supportedVerbs);
      sessions[via].set(principal, session);
      return session;
    },
    async metrics(principal) {
      if (!options.scrape) throw new OmpError('unsupported_capability', NO_METRICS);
      if (!isAllowed({ read: 'all', users: 'all' }, principal)) throw new OmpError('scope_denied', METRICS_DENIED);
      return options.scrape();
    },
    ping: store.ping,
    feed,
  };
}

/** Keeps the getters of a store that is several. */
const without = (member: keyof Store, store: Store): Store =>
  store[member] === undefined
    ? store
    : Object.defineProperties({} as Store, {
        ...Object.getOwnPropertyDescriptors(store),
        [member]: { value: undefined, enumerable: true },
        ...(store.mounts && {
          mounts: { value: { ...store.mounts, root: without(member, store.mounts.root) }, enumerable: true },
        }),
      });

const NO_METRICS = 'this gateway collects no metrics; set OMP_METRICS_PORT';
const METRICS_DENIED = 'metrics are about all users: they need a key for all users with the grant read:*';

function sessionOf(access: Access, supportedVerbs: ReadonlySet<unknown>): Session {
  const require: Session['require'] = (verb) => {
    if (!supportedVerbs.has(verb)) throw unsupported(verb, access.store);
  };
  return {
    require,
    async run(verb, input, call) {
      require(verb);
      const fields = parse(verb.input, input);
      reportIgnored(call, verb.input, input as object);
      const request = verb.read ? verb.read(fields, access, call) : (fields as Parameters<typeof verb.run>[0]);
      const { demands, facts: factsOf } = verb;
      const run = (facts: AuditFacts) => verb.run(request, access as Parameters<typeof verb.run>[1], call, facts);
      let work = run;
      if (demands) {
        work = async (facts) => {
          await meetDemands(demands, access.principal, fields, { keys: access.store.keys, call });
          return run(facts);
        };
      }
      for (const facts of typeof factsOf === 'string' ? [] : [factsOf(request, access)].flat()) {
        const inner = work;
        work = () => access.audited(verb.name as AuditAction, facts, call, inner);
      }
      const output = await work(NO_FACTS);
      if (verb.writes) access.feed.changed();
      return withLeftOut(output, call);
    },
  };
}

/** Says in the answer which stores it lacks (Decision 49). */
const withLeftOut = <Output>(output: Output, { leftOut }: Call): Output =>
  leftOut ? { ...output, ...leftOut } : output;

function unsupported(
  { name, tag, remedy, writes }: Pick<Verb, 'name' | 'tag' | 'remedy' | 'writes'>,
  { name: provider, read_only }: Store,
): OmpError {
  const reason = remedy ?? (writes && read_only);
  const message = `the provider does not support ${tag ?? name}${reason ? `: ${reason}` : ''}`;
  return new OmpError('unsupported_capability', message, { provider });
}
