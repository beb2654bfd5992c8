/**
 * Decides who may read and write: applies the users and grants of a caller (`principal.ts`) to every verb.
 */
import {
  type AuditEntry,
  type AuditQuery,
  type Call,
  type IdempotencyKey,
  type ListQuery,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OmpError,
  providerError,
  type Ref,
  type SearchHit,
  type StatsQuery,
  type StoredEntry,
  type UserStats,
  type UserSummary,
  type UsersQuery,
  type Within,
} from '#contract';
import { countWithin, globsOverlap, withinMatcher } from '#toolbox';
import type { AuditFacts, AuditQueue } from './audit-queue.ts';
import { type ContextBlock, type ContextOptions, MIN_SIMILARITY, toContext } from './context.ts';
import type { Principal } from './principal.ts';
import type { Memories, TextQuery } from './with-embedder.ts';

/** A record in a request. With `user_id`, a record of another user counts as absent. */
export interface Target {
  readonly id: string;
  readonly user_id?: string;
}

/** A query of a caller. The gateway adds the allowed scopes and the byte limits. */
export type CallerQuery<Query> = Omit<Query, 'within' | 'max_bytes' | 'max_content_bytes'>;

/** The first part of a result. */
export interface Part<Item> {
  readonly items: Item[];
  /** Whether the result continues, after the limit of the query or the byte limit of a response. */
  readonly more: boolean;
}

/**
 * The verbs of the protocol for one caller, and the only way from HTTP to a provider. Every verb enforces the caller's
 * grants (Decision 14). The provider does not support absent verbs.
 */
export interface Verbs {
  /** `Provider.read_only`. */
  readonly read_only?: string;
  /** Idempotent with `key`. */
  add?(input: NewMemory, key: Omit<IdempotencyKey, 'caller'> | undefined, call: Call): Promise<Memory>;
  /**
   * Like `update` and `delete`: throws `not_found` if there is no such record or the caller may not access its user, and
   * `scope_denied` if the grants do not cover its scope.
   */
  get(target: Target, call: Call): Promise<Memory>;
  update?(target: Target, patch: MemoryPatch, call: Call): Promise<Memory>;
  delete?(target: Target, call: Call): Promise<void>;
  list?(query: CallerQuery<ListQuery>, call: Call): Promise<Part<Memory>>;
  /** `more`: hits are left out, since they exceed the byte limit of a response. */
  search?(query: CallerQuery<TextQuery>, call: Call): Promise<Part<SearchHit>>;
  context?(query: Omit<CallerQuery<TextQuery>, 'limit'>, options: ContextOptions, call: Call): Promise<ContextBlock>;
  audit?(query: CallerQuery<AuditQuery>, call: Call): Promise<StoredEntry[]>;
  users?(query: Omit<UsersQuery, 'users' | 'within'>, call: Call): Promise<Part<UserSummary>>;
  stats?(query: Omit<StatsQuery, 'within'>, call: Call): Promise<UserStats>;
}

/** A record or an audit entry. */
type Owned = Pick<AuditEntry, 'user_id' | 'scope'>;

/** Maximum bytes of the records in one response (`recordBytes`); a single record may be larger. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** Longest content of a context candidate, in bytes per token of the budget: a longer one cannot fit. */
const BYTES_PER_TOKEN = 32;
/** Candidates of a context: the largest search limit. More would not change the result for usual budgets. */
const CONTEXT_CANDIDATES = 100;

/**
 * Enforces the grants of a caller, in one place for all providers. The rule is part of every query and is checked again on
 * every returned record. A caller gets the same results as if the store held only the records that it may read.
 */
export function verbsFor(principal: Principal, provider: Memories, auditQueue: AuditQueue): Verbs {
  const { users, grants } = principal;
  const { add, addIdempotent, update, delete: remove, list, search, users: listUsers, userStats } = provider;
  const { audited, read } = auditQueue;
  const mayAccess = (user: string) => users === null || users.includes(user);

  /** The user is not recorded unless the caller may access it. */
  const factsOf = ({ user_id, scope = null }: { user_id: string; scope?: string | null | undefined }): AuditFacts => ({
    user_id: mayAccess(user_id) ? user_id : null,
    memory_id: null,
    scope,
  });
  const refTo = ({ id, user_id }: Target, within: Within): Ref => {
    if (user_id === undefined) return { id, users, within };
    return { id, users: mayAccess(user_id) ? [user_id] : [], within };
  };
  /** Rejects records of a faulty provider that are outside the query. */
  const checkedBy = (within: Within) => {
    const admits = withinMatcher(within);
    return <Row extends Owned>(row: Row, queried = row.user_id): Row => {
      const { user_id, scope } = row;
      if (user_id !== null && user_id === queried && mayAccess(user_id) && admits(scope)) return row;
      throw mismatch(provider.name);
    };
  };
  const readable = checkedBy(grants.read);
  const writable = checkedBy(grants.write);
  const [admitsRead, admitsWrite] = [withinMatcher(grants.read), withinMatcher(grants.write)];

  /**
   * The error for a record outside the allowed scopes: `scope_denied` if it exists and the caller may access its user, else
   * `not_found`. Both need the same lookups, so the response time does not reveal whether a record exists.
   */
  const accessError = async (target: Target, call: Call, facts: AuditFacts): Promise<OmpError> => {
    const found = await provider.get(refTo(target, null), call);
    if (!found || !mayAccess(found.user_id)) return notFound();
    recordFacts(facts, found);
    return denied();
  };
  const absenceError = async (within: Within, target: Target, call: Call, facts: AuditFacts): Promise<OmpError> =>
    within === null ? notFound() : accessError(target, call, facts);
  /** Throws unless the caller may access the user and some scope of the query. */
  const requireAccess = (user: string, within: Within, glob?: string) => {
    if (!mayAccess(user)) throw denied();
    requireScope(within, glob);
  };
  const bounds = { within: grants.read, max_bytes: MAX_ANSWER_BYTES };
  const searchAllowed = async (query: Omit<TextQuery, keyof typeof bounds>, call: Call): Promise<Part<SearchHit>> => {
    requireAccess(query.user_id, grants.read, query.scope === undefined ? undefined : `${query.scope}*`);
    const hits = await (search as NonNullable<typeof search>)({ ...query, ...bounds }, call);
    const records = hits.map(({ memory }) => readable(memory, query.user_id));
    return partOf(hits, countWithin(records, MAX_ANSWER_BYTES));
  };

  return {
    ...(provider.read_only !== undefined && { read_only: provider.read_only }),
    ...(add && {
      add: (input, key, call) =>
        audited('add', factsOf(input), call, async () => {
          if (!mayAccess(input.user_id) || !admitsWrite(input.scope)) throw denied();
          if (!key) return writable(await add(input, call), input.user_id);
          if (!addIdempotent) throw idempotencyUnsupported(provider.name);
          return writable(await addIdempotent(input, { ...key, caller: principal.id }, call), input.user_id);
        }),
    }),
    get: (target, call) =>
      audited('get', factsOfId(target), call, async (facts) => {
        const found = await provider.get(refTo(target, grants.read), call);
        if (!found) throw await absenceError(grants.read, target, call, facts);
        return recordFacts(facts, readable(found, target.user_id));
      }),
    ...(update && {
      update: (target, patch, call) =>
        audited('update', factsOfId(target), call, async (facts) => {
          if (patch.scope !== undefined && !admitsWrite(patch.scope)) throw await accessError(target, call, facts);
          const updated = await update(refTo(target, grants.write), patch, call);
          if (!updated) throw await absenceError(grants.write, target, call, facts);
          return writable(updated, target.user_id);
        }),
    }),
    ...(remove && {
      delete: (target, call) =>
        audited('delete', factsOfId(target), call, async (facts) => {
          if (!(await remove(refTo(target, grants.delete), call))) {
            throw await absenceError(grants.delete, target, call, facts);
          }
        }),
    }),
    ...(list && {
      list: (query, call) =>
        audited('list', factsOf(query), call, async () => {
          requireAccess(query.user_id, grants.read, query.scope);
          // One more record than the limit tells whether the list continues.
          const found = await list({ ...query, limit: query.limit + 1, ...bounds }, call);
          for (const memory of found) readable(memory, query.user_id);
          return partOf(found, Math.min(query.limit, countWithin(found, MAX_ANSWER_BYTES)));
        }),
    }),
    ...(search && {
      search: (query, call) => audited('search', factsOf(query), call, () => searchAllowed(query, call)),
      context: (query, options, call) =>
        audited('context', factsOf(query), call, async () => {
          const limit = Math.min(CONTEXT_CANDIDATES, provider.capabilities.max_search_results ?? CONTEXT_CANDIDATES);
          const { budget, min_score = provider.capabilities.vector_search ? MIN_SIMILARITY : 0 } = options;
          const max_content_bytes = budget * BYTES_PER_TOKEN;
          const { items } = await searchAllowed({ ...query, limit, max_content_bytes }, call);
          return toContext(items, { budget, min_score }, new Date(), call);
        }),
    }),
    ...(read && {
      audit: (query, call) =>
        audited('audit', factsOf(query), call, async () => {
          requireAccess(query.user_id, grants.read);
          const entries = await read({ ...query, within: grants.read }, call);
          for (const entry of entries) readable(entry, query.user_id);
          return entries;
        }),
    }),
    ...(listUsers && {
      users: (query, call) =>
        audited('users', NO_FACTS, call, async () => {
          requireScope(grants.read);
          const found = await listUsers({ ...query, limit: query.limit + 1, users, within: grants.read }, call);
          if (!found.every(({ user_id, count }) => mayAccess(user_id) && count > 0)) throw mismatch(provider.name);
          return partOf(found, query.limit);
        }),
    }),
    ...(userStats && {
      stats: (query, call) =>
        audited('stats', factsOf(query), call, async () => {
          requireAccess(query.user_id, grants.read);
          const stats = await userStats({ ...query, within: grants.read }, call);
          if (!stats.scopes.every(({ scope }) => admitsRead(scope))) throw mismatch(provider.name);
          return stats;
        }),
    }),
  };
}

/** Throws unless a scope of the query may be allowed. */
function requireScope(within: Within, glob = '*'): void {
  if (within !== null && !within.some((granted) => globsOverlap(granted, glob))) throw denied();
}

const NO_FACTS: AuditFacts = { user_id: null, memory_id: null, scope: null };
/** The owner is recorded once the record is known (`recordFacts`): a user that the caller claims does not enter the log. */
const factsOfId = ({ id }: Target): AuditFacts => ({ user_id: null, memory_id: id, scope: null });
function recordFacts(facts: AuditFacts, memory: Memory): Memory {
  facts.user_id = memory.user_id;
  facts.scope = memory.scope;
  return memory;
}

const partOf = <Item>(found: readonly Item[], count: number): Part<Item> => ({
  items: found.slice(0, count),
  more: found.length > count,
});

const idempotencyUnsupported = (provider: string) =>
  new OmpError('unsupported_capability', 'the provider does not support Idempotency-Key', { provider });
const mismatch = (provider: string) =>
  providerError(provider, 'the backend returned records that do not match the query');
const notFound = () => new OmpError('not_found', 'no memory has this id');
const denied = () => new OmpError('scope_denied', 'the key lacks the permission for this user or scope');
