import {
  type AuditEntry,
  type Call,
  type Log,
  type Memory,
  OmpError,
  providerError,
  type Ref,
  type Within,
} from '#contract';
import { globsOverlap, withinMatcher } from '#toolbox';
import type { AuditFacts, AuditQueue } from './audit-queue.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Principal } from './grants.ts';
import { MAX_ANSWER_BYTES, type ReadShares } from './read-shares.ts';
import type { Store } from './with-embedder.ts';

/** What the verbs of a gateway work with. */
export interface Resources {
  /** The provider with its decorators (`compose`). */
  readonly store: Store;
  readonly auditQueue: AuditQueue;
  readonly shares: ReadShares;
  readonly feed: ChangeFeed;
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

/** A record or an audit entry. */
type OwnedRow = Pick<AuditEntry, 'user_id' | 'scope'>;

/**
 * Decides what one caller may read and write, in one place for all verbs and all providers. A verb makes its queries with
 * `ref` and `bounds`, and passes every record that the store returns through `readable` or `writable`. So a caller gets the
 * same results as if the store held only the records that it may read.
 */
export class Access implements Resources {
  readonly principal: Principal;
  readonly store: Store;
  readonly auditQueue: AuditQueue;
  readonly audited: AuditQueue['audited'];
  readonly shares: ReadShares;
  readonly feed: ChangeFeed;
  readonly log: Log;
  readonly max_record_bytes: number;
  /** The allowed scopes of a query that reads, and its limit in bytes. */
  readonly bounds: { readonly within: Within; readonly max_bytes: number };
  /** Whether a scope is among the allowed ones. */
  readonly admitsRead: (scope: string | null) => boolean;
  readonly admitsWrite: (scope: string | null) => boolean;

  constructor(principal: Principal, { store, auditQueue, shares, feed, log, max_record_bytes }: Resources) {
    this.principal = principal;
    this.store = store;
    this.auditQueue = auditQueue;
    this.audited = auditQueue.audited;
    this.shares = shares;
    this.feed = feed;
    this.log = log;
    this.max_record_bytes = max_record_bytes;
    this.bounds = { within: principal.grants.read, max_bytes: MAX_ANSWER_BYTES };
    this.admitsRead = withinMatcher(principal.grants.read);
    this.admitsWrite = withinMatcher(principal.grants.write);
  }

  mayAccess(user: string): boolean {
    const { users } = this.principal;
    return users === null || users.includes(user);
  }

  /** The facts of an audit entry. The user is not recorded unless the caller may access it. */
  facts({ user_id, scope = null }: { user_id: string; scope?: string | null | undefined }): AuditFacts {
    return { user_id: this.mayAccess(user_id) ? user_id : null, memory_id: null, scope };
  }

  ref({ id, user_id, versions }: Target, within: Within): Ref {
    if (user_id === undefined) return { id, users: this.principal.users, within, versions };
    return { id, users: this.mayAccess(user_id) ? [user_id] : [], within, versions };
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

  /** Throws unless the caller may access the user, if one is named, and, with these scopes, some scope of the query. */
  requireUser(user: string | undefined, within: Within, glob = '*'): void {
    if (user !== undefined && !this.mayAccess(user)) throw denied();
    if (within !== null && !within.some((grantedGlob) => globsOverlap(grantedGlob, glob))) throw denied();
  }

  /**
   * The error for a record outside the allowed scopes: `scope_denied` if it exists and the caller may access its user, else
   * `not_found`. Both need the same lookups, so the response time does not reveal whether a record exists.
   */
  async accessError(target: Target, call: Call, facts: AuditFacts): Promise<OmpError> {
    const memory = await this.store.get(this.ref(target, null), call);
    if (!memory || !this.mayAccess(memory.user_id)) return notFound();
    recordFacts(facts, memory);
    return denied();
  }

  /** The error for a record that a query with these allowed scopes did not find. */
  async absenceError(within: Within, target: Target, call: Call, facts: AuditFacts): Promise<OmpError> {
    return within === null ? notFound() : this.accessError(target, call, facts);
  }

  mismatch(): OmpError {
    return providerError(this.store.name, 'the backend returned records that do not match the query');
  }

  unsupported(what: string): OmpError {
    const { name } = this.store;
    return new OmpError('unsupported_capability', `the provider does not support ${what}`, { provider: name });
  }
}

/** The owner is recorded once the record is known: a user that the caller claims does not enter the log. */
export function recordFacts(facts: AuditFacts, memory: Memory): Memory {
  facts.user_id = memory.user_id;
  facts.scope = memory.scope;
  return memory;
}

export const notFound = () => new OmpError('not_found', 'no memory has this id');
export const denied = () => new OmpError('scope_denied', 'the key lacks the permission for this user or scope');
