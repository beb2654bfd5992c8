/** What one caller may do: which memories it may read and write, and how much of them at once. */
import {
  type AuditEntry,
  type Call,
  type ChangeFilter,
  type Log,
  type Memory,
  OmpError,
  providerError,
  type Ref,
  type Way,
  type Within,
} from '#contract';
import { createKeyedMutex, globsOverlap, sizeWithin, withinMatcher } from '#toolbox';
import type { AuditFacts, AuditQueue } from './audit-queue.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Action, Principal } from './grants.ts';
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

/** The result of a read, with the number of its records and their size (`recordBytes`). */
export interface SizedResult<Result> {
  readonly result: Result;
  readonly count: number;
  readonly bytes: number;
}

/**
 * Gives every caller the same share of the memory for answers, and of the event loop's time to make them. A read reserves
 * the bytes that it may take; beyond the share of its caller it waits, in the order of arrival. The share gets the bytes
 * back once the client has taken the answer (`Call.afterAnswer`). Only the first read of a request waits; the others count. Throws `rate_limited` if it has waited too long, or the request ends.
 */
export interface ReadShares {
  /**
   * A read of at most `limit` records, each of `recordBytes`; the default is what the caller's records took lately. A read of
   * little never waits. Large results of all callers are returned one after another, with turns of the event loop
   * between them for other requests.
   */
  records<Result>(
    limit: number,
    call: Call,
    work: () => Promise<SizedResult<Result>>,
    recordBytes?: number,
  ): Promise<Result>;
  /** A read that takes the whole share of its caller, so one runs at a time. The result gives half of the share back. */
  alone<Result>(call: Call, work: () => Promise<Result>): Promise<Result>;
  /**
   * A read of little for a file, which reads on and on. Those of one caller run one at a time for each store (its name), each after a turn of
   * the event loop, and apart from those of its followers (`shared`): these have a deadline, which a slow file would use up.
   */
  part<Result>(store: string, call: Call, work: () => Promise<Result>): Promise<Result>;
  /**
   * As `part`. Equal reads of one caller that wait for their turn are one, and what each makes of it has a turn of its own. One that has
   * begun is not shared: it may not see what the next was woken for. `what`: what is equal.
   */
  shared<Result>(store: string, what: string, call: Call, work: () => Promise<Result>): Promise<Result>;
  /** Waits for its place among the large results: for what many do at one moment. */
  turn(): Promise<void>;
}

/** Maximum bytes of the records in one response (`recordBytes`); a single record may be larger. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** The share of one caller: two of the largest answers. */
export const SHARE_BYTES = 2 * MAX_ANSWER_BYTES;
/** A read that takes less is not counted. */
export const SMALL_BYTES = 128 * 1024;
/** Expected size of a record of an unknown caller: 500 of them fill the largest answer. */
const FIRST_RECORD_BYTES = 8 * 1024;
/** Otherwise a caller could start hundreds of large reads at once after some small ones. */
const MIN_RECORD_BYTES = 1024;
/** The expected size rises at once, and falls by this part of the difference with each answer. */
const FALL = 1 / 8;
/**
 * A large result lets the event loop turn once for each so many bytes. A turn without work takes microseconds; a small
 * request takes a few turns, and so does a connection, of which each turn accepts one.
 */
const BYTES_PER_TURN = 128 * 1024;
/** A read that waited longer gets 429 when its turn comes, so that one that begins has most of its deadline left. */
const MAX_WAIT_MS = 10_000;
/** Above this, the oldest caller without a read is evicted. */
const MAX_CALLERS = 10_000;

/** The share of one caller. */
interface Share {
  usedBytes: number;
  /** Expected size of a record, in bytes. */
  recordBytes: number;
  readonly queue: QueuedRead[];
}

interface QueuedRead {
  readonly bytes: number;
  readonly call: Call;
  readonly since: number;
  readonly start: () => void;
  readonly reject: (error: OmpError) => void;
}

/** `stores`: how many are read for one answer; each may send as much as the answer may hold. */
export function createReadShares(stores = 1): ReadShares {
  const shares = new Map<string, Share>();
  /** What a request has reserved, in bytes. */
  const reservations = new WeakMap<Call, number>();
  let ahead = Promise.resolve();
  const oneByOne = createKeyedMutex();
  const waiting = new Map<string, { readonly call: Call; readonly result: Promise<unknown> }>();

  const shareOf = ({ caller: { id } }: Call): Share => {
    const existing = shares.get(id);
    if (existing) return existing;
    if (shares.size >= MAX_CALLERS) {
      for (const [other, { usedBytes }] of shares) {
        if (usedBytes > 0) continue;
        shares.delete(other);
        break;
      }
    }
    const share = { usedBytes: 0, recordBytes: FIRST_RECORD_BYTES, queue: [] };
    shares.set(id, share);
    return share;
  };
  const fits = ({ usedBytes }: Share, bytes: number) => usedBytes === 0 || usedBytes + bytes <= SHARE_BYTES;
  const startNext = (share: Share) => {
    const { queue } = share;
    for (let [first] = queue; first && (first.call.aborted || fits(share, first.bytes)); [first] = queue) {
      queue.shift();
      if (first.call.aborted || performance.now() - first.since > MAX_WAIT_MS) first.reject(waitedTooLong());
      else {
        reserve(share, first.bytes, first.call);
        first.start();
      }
    }
  };
  /** A negative number gives bytes back. */
  const reserve = (share: Share, bytes: number, call: Call) => {
    const before = reservations.get(call);
    share.usedBytes += bytes;
    reservations.set(call, (before ?? 0) + bytes);
    if (bytes < 0) startNext(share);
    if (before === undefined) {
      call.afterAnswer(() => {
        share.usedBytes -= reservations.get(call) ?? 0;
        reservations.delete(call);
        startNext(share);
      });
    }
  };
  const admit = async (share: Share, bytes: number, call: Call) => {
    if (reservations.has(call) || (share.queue.length === 0 && fits(share, bytes))) return reserve(share, bytes, call);
    const admission = new Promise<void>((start, reject) =>
      share.queue.push({ bytes, call, since: performance.now(), start, reject }),
    );
    try {
      await call.unlessAborted(admission);
    } catch {
      throw waitedTooLong();
    }
  };
  const afterOthers = (bytes: number): Promise<void> => {
    ahead = ahead.then(async () => {
      for (let turn = 0; turn < bytes / BYTES_PER_TURN; turn++) await new Promise((resolve) => setImmediate(resolve));
    });
    return ahead;
  };
  const inTurn = <Result>(store: string, call: Call, work: () => Promise<Result>, onTurn = () => {}) =>
    oneByOne(JSON.stringify([call.caller.id, store]), async () => {
      await afterOthers(BYTES_PER_TURN);
      onTurn();
      call.throwIfAborted();
      return work();
    });

  return {
    async records(limit, call, work, recordBytes) {
      const share = shareOf(call);
      const estimate = stores * countedBytes(Math.min(limit * (recordBytes ?? share.recordBytes), MAX_ANSWER_BYTES));
      if (estimate > 0) await admit(share, estimate, call);
      const { result, count, bytes } = await work();
      if (count > 0) learn(share, bytes / count);
      const actual = countedBytes(bytes);
      if (actual !== estimate) reserve(share, actual - estimate, call);
      if (actual > BYTES_PER_TURN) await afterOthers(actual);
      return result;
    },
    async alone(call, work) {
      const share = shareOf(call);
      await admit(share, SHARE_BYTES, call);
      const result = await work();
      await afterOthers(MAX_ANSWER_BYTES);
      reserve(share, MAX_ANSWER_BYTES - SHARE_BYTES, call);
      return result;
    },
    part: (store, call, work) => inTurn(`file of ${store}`, call, work),
    async shared<Result>(store: string, what: string, call: Call, work: () => Promise<Result>) {
      const key = JSON.stringify([call.caller.id, store, what]);
      for (;;) {
        const one = waiting.get(key) ?? { call, result: inTurn(store, call, work, () => waiting.delete(key)) };
        waiting.set(key, one);
        try {
          const result = (await call.unlessAborted(one.result)) as Result;
          if (one.call !== call) await afterOthers(BYTES_PER_TURN);
          return result;
        } catch (error) {
          // The request whose read it was may have ended, and this one has not.
          if (one.call === call || !one.call.aborted || call.aborted) throw error;
        }
      }
    },
    turn: () => afterOthers(BYTES_PER_TURN),
  };
}

const waitedTooLong = (): OmpError =>
  new OmpError('rate_limited', 'other large reads of this caller are still running; retry in 1 s', { retryAfter: 1 });

const countedBytes = (bytes: number): number => (bytes > SMALL_BYTES ? bytes : 0);

function learn(share: Share, recordBytes: number): void {
  const fallen = share.recordBytes - (share.recordBytes - recordBytes) * FALL;
  share.recordBytes = Math.ceil(Math.max(MIN_RECORD_BYTES, recordBytes, fallen));
}

/** The first items of a result. */
export interface Page<Item> {
  readonly items: Item[];
  /** Whether the result continues, after the limit of the query or the byte limit of a response. */
  readonly more: boolean;
}

/** The first items, at most `limit`, whose memories fit into one response. */
export function pageOf<Item>(
  all: readonly Item[],
  memories: readonly Memory[],
  limit = all.length,
): SizedResult<Page<Item>> {
  const { count, bytes } = sizeWithin(memories, MAX_ANSWER_BYTES);
  const items = all.slice(0, Math.min(limit, count));
  return { result: { items, more: all.length > items.length }, count, bytes };
}
