/** What one caller may do: which memories it may read and write. */
import {
  type AuditEntry,
  type Call,
  type ChangeFilter,
  isUntrusted,
  type Log,
  type Memory,
  OmpError,
  providerError,
  type Ref,
  type Way,
  type Within,
  type Written,
} from '#contract';
import { globsOverlap, withinMatcher } from '#toolbox';
import type { AuditFacts, AuditQueue } from './audit-queue.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Action, Principal } from './grants.ts';
import { MAX_ANSWER_BYTES, type ReadShares } from './read-shares.ts';
import { type ServiceKey, type Services, serviceIn } from './services.ts';
import type { Store } from './store.ts';
import type { UserLimitRules } from './user-limits.ts';
import { untrustedDenied, withOrigin } from './with-origin.ts';

/** What the verbs of a gateway work with. */
export interface Resources {
  /** The provider with its decorators (`compose`). */
  readonly store: Store;
  readonly auditQueue: AuditQueue;
  readonly shares: ReadShares;
  readonly feed: ChangeFeed;
  /** Of features. */
  readonly services: Services;
  /** Undefined: none are configured. */
  readonly userLimits?: UserLimitRules | undefined;
  readonly log: Log;
  /** Maximum size of a record, and of all records of one batch (`recordBytes`). */
  readonly max_record_bytes: number;
}

/** A record in a request. With `user_id`, a record of another user counts as absent. */
export interface Target {
  readonly id: string;
  readonly user_id?: string | undefined;
  /** `Ref.versions`. */
  readonly versions?: readonly string[] | undefined;
}

/** What is to be known of one of several stores. Changes go through `Access.store`, which stamps them. */
export type StoreFacts = Pick<Store, 'name' | 'capabilities' | 'idempotent' | 'versions'>;

/** A record or an audit entry. */
type OwnedRow = Pick<AuditEntry, 'user_id' | 'scope'>;

/**
 * Decides which records one caller may read and write, in one place for all verbs and all providers; whether the caller may ask for a verb at
 * all is decided before, by its demands (`demands.ts`). A verb makes its queries with
 * `ref` and `bounds`, and passes every record that the store returns through `readable` or `writable`. So a caller gets the
 * same results as if the store held only the records that it may read.
 */
export class Access implements Resources {
  readonly principal: Principal;
  /** Changes carry the origin of this caller (`withOrigin`). */
  readonly store: Store;
  readonly #store: Store;
  readonly auditQueue: AuditQueue;
  readonly audited: AuditQueue['audited'];
  readonly shares: ReadShares;
  readonly feed: ChangeFeed;
  readonly services: Services;
  readonly userLimits: UserLimitRules | undefined;
  readonly log: Log;
  readonly max_record_bytes: number;
  /** The allowed scopes of a query that reads, and its limit in bytes. */
  readonly bounds: { readonly within: Within; readonly max_bytes: number };
  /** Whether the caller may read every scope that it may write, by comparison of the globs. */
  readonly readsAllItWrites: boolean;
  /** Whether a scope is among the allowed ones. */
  readonly admitsRead: (scope: string | null) => boolean;
  readonly admitsWrite: (scope: string | null) => boolean;

  /** `via`: the way in of the session. */
  constructor(principal: Principal, via: Way, resources: Resources) {
    const { store, auditQueue, shares, feed, services, userLimits, log, max_record_bytes } = resources;
    this.principal = principal;
    this.#store = store;
    this.store = withOrigin(store, principal, { via }, userLimits);
    this.auditQueue = auditQueue;
    this.audited = auditQueue.audited;
    this.shares = shares;
    this.feed = feed;
    this.services = services;
    this.userLimits = userLimits;
    this.log = log;
    this.max_record_bytes = max_record_bytes;
    const { read, write } = principal.grants;
    this.bounds = { within: read, max_bytes: MAX_ANSWER_BYTES };
    this.readsAllItWrites = read === null || (write?.every((glob) => read.includes(glob)) ?? false);
    this.admitsRead = withinMatcher(read);
    this.admitsWrite = withinMatcher(write);
  }

  /** Undefined: the feature is off. */
  service<Service>(key: ServiceKey<Service>): Service | undefined {
    return serviceIn(this.services, key);
  }

  mayAccess(user: string): boolean {
    const { users } = this.principal;
    return users === null || users.includes(user);
  }

  /** The facts of an audit entry. The user is not recorded unless the caller may access it. */
  facts({ user_id, scope = null }: { user_id: string; scope?: string | null | undefined }): AuditFacts {
    return { user_id: this.mayAccess(user_id) ? user_id : null, memory_id: null, scope };
  }

  /** The store for changes that bring a version back: they carry this way instead of that of the session (`withOrigin`). */
  through(via: 'restore' | 'rollback', version: number): this['store'] {
    return withOrigin(this.#store, this.principal, { via, version }, this.userLimits);
  }

  /** The store that holds the records of this scope. */
  readonly storeAt = (scope: string | null): StoreFacts => this.store.mounts?.ofScope(scope) ?? this.store;

  /** The store of an id; undefined: no grant reaches it, so it must not show that it is there. */
  storeOf(id: string): StoreFacts | undefined {
    const place = this.store.mounts?.ofId(id);
    if (!place) return this.store.mounts?.root ?? this.store;
    const { read, write, delete: remove } = this.principal.grants;
    const { mount, store } = place;
    const reaches = (glob: string) => globsOverlap(glob, mount) || globsOverlap(glob, `${mount}/*`);
    return [read, write, remove].some((within) => within === null || within.some(reaches)) ? store : undefined;
  }

  /** Names a record if the caller may do this with it; `any`: wherever it is. */
  ref({ id, user_id, versions }: Target, action: Action | 'any'): Ref {
    const within = this.#within(action);
    if (user_id === undefined) return { id, users: this.principal.users, within, versions };
    return { id, users: this.mayAccess(user_id) ? [user_id] : [], within, versions };
  }

  #within(action: Action | 'any'): Within {
    return action === 'any' ? null : this.principal.grants[action];
  }

  /** The users and scopes that the caller may read, of those that a query names. */
  filter({
    user_id,
    scope,
  }: Pick<ChangeFilter, 'scope'> & { readonly user_id?: string | undefined } = {}): ChangeFilter {
    return { users: user_id === undefined ? this.principal.users : [user_id], within: this.bounds.within, scope };
  }

  /** The row. Throws if a faulty provider returned one that is outside the query. */
  readable<Row extends OwnedRow>(row: Row, user = row.user_id): Row {
    return this.#check(row, user, this.admitsRead);
  }

  writable<Row extends OwnedRow>(row: Row, user = row.user_id): Row {
    return this.#check(row, user, this.admitsWrite);
  }

  #check<Row extends OwnedRow>(row: Row, user: string | null, admits: (scope: string | null) => boolean): Row {
    const { user_id, scope } = row;
    if (user_id !== null && user_id === user && this.mayAccess(user_id) && admits(scope)) return row;
    throw this.mismatch();
  }

  /** Whether the caller may access the user, if one is named, and read some scope of the query. */
  reaches(user: string | undefined, glob = '*'): boolean {
    if (user !== undefined && !this.mayAccess(user)) return false;
    const { within } = this.bounds;
    return within === null || within.some((grantedGlob) => globsOverlap(grantedGlob, glob));
  }

  /** Throws unless the caller reaches them. */
  requireUser(user: string | undefined, glob?: string): void {
    if (!this.reaches(user, glob)) throw denied();
  }

  /** What a query asks of the store by who wrote a memory. A store without origins leaves `withTrust` to filter what it returns. */
  writtenOf(origin: Written['origin'], untrusted: boolean | undefined): Written | undefined {
    const { name, capabilities } = this.store;
    if (!capabilities.origins) {
      if (origin === undefined) return undefined;
      const message = 'origin: the provider cannot filter by who wrote a memory (features.origins is false)';
      throw new OmpError('unsupported_capability', message, { provider: name });
    }
    if (untrusted === false) return origin ? { origin, trusted: true } : { trusted: true };
    return origin && { origin };
  }

  /** Throws `unsupported_capability` if one of these fields is given and the store lacks what it needs. */
  requireTimes(fields: Readonly<Record<string, unknown>>, capability: 'temporal' | 'temporal_search'): void {
    const { name, capabilities } = this.store;
    if (capabilities[capability]) return;
    for (const [field, value] of Object.entries(fields)) {
      const reason = capability === 'temporal' ? 'stores no creation times' : 'cannot search by time';
      const message = `${field}: the provider ${reason} (features.${capability} is false)`;
      if (value !== undefined) throw new OmpError('unsupported_capability', message, { provider: name });
    }
  }

  /**
   * The error for a record outside the allowed scopes: `scope_denied` if it exists and the caller may access its user, else
   * `not_found`. Both need the same lookups, so the response time does not reveal whether a record exists.
   */
  async accessError(target: Target, call: Call, facts: AuditFacts): Promise<OmpError> {
    if (!this.storeOf(target.id)) return notFound();
    const memory = await this.store.get(this.ref(target, 'any'), call);
    if (!memory || !this.mayAccess(memory.user_id)) return notFound();
    recordFacts(facts, memory);
    return this.principal.untrusted ? untrustedDenied() : denied();
  }

  /** The error for a record that a query for this action did not find. */
  async absenceError(action: Action, target: Target, call: Call, facts: AuditFacts): Promise<OmpError> {
    // For an untrusted caller, memories without the mark count as absent too (`withOrigin`).
    return this.#within(action) === null && !this.principal.untrusted
      ? notFound()
      : this.accessError(target, call, facts);
  }

  mismatch(): OmpError {
    return providerError(this.store.name, 'the backend returned records that do not match the query');
  }

  unsupported(what: string, { name }: Pick<Store, 'name'> = this.store): OmpError {
    return new OmpError('unsupported_capability', `the provider does not support ${what}`, { provider: name });
  }
}

/** The owner is recorded once the record is known: a user that the caller claims does not enter the log. */
export function recordFacts(facts: AuditFacts, memory: Memory): Memory {
  facts.user_id = memory.user_id;
  facts.scope = memory.scope;
  return memory;
}

const notFound = () => new OmpError('not_found', 'no memory has this id');
export const denied = () => new OmpError('scope_denied', 'the key lacks the permission for this user or scope');

/** Without what untrusted keys wrote, if `untrusted` is false: a mounted store may not have filtered it. */
export const withTrust = <Item>(
  items: readonly Item[],
  untrusted: boolean | undefined,
  memoryOf: (item: Item) => Memory,
): readonly Item[] => (untrusted === false ? items.filter((item) => !isUntrusted(memoryOf(item))) : items);
