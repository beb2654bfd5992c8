/**
 * Decides who may read and write: applies the users and grants of a caller (`principal.ts`) to every verb.
 */
import {
  type AuditAction,
  type AuditEntry,
  type AuditQuery,
  type Call,
  type IdempotencyKey,
  type KeyListQuery,
  type ListQuery,
  type Memory,
  type MemoryPatch,
  type MovedMemory,
  type NewKey,
  type NewMemory,
  OmpError,
  providerError,
  type Ref,
  type ScanPart,
  type ScanQuery,
  type SearchHit,
  type StatsQuery,
  type StoredEntry,
  type StoredKey,
  type UserListQuery,
  type UserPart,
  type UserStats,
  type Verb,
  type Within,
} from '#contract';
import { globsOverlap, isSameRecord, mergeHits, sizeWithin, upToBytes, withinMatcher } from '#toolbox';
import type { AuditFacts, AuditQueue } from './audit-queue.ts';
import { type ContextBlock, type ContextOptions, MIN_SIMILARITY, toContext } from './context.ts';
import { currentHits, markSuperseded } from './current.ts';
import { type ExplainedHit, explainHits } from './explain.ts';
import { drawMap, type MemoryMap } from './map.ts';
import type { Principal } from './principal.ts';
import { MAX_ANSWER_BYTES, type ReadShares, type SizedResult } from './read-shares.ts';
import type { Scrape } from './telemetry.ts';
import type { Memories, TextQuery } from './with-embedder.ts';

/** A record in a request. With `user_id`, a record of another user counts as absent. */
export interface Target {
  readonly id: string;
  readonly user_id?: string;
  /** `Ref.versions`. */
  readonly versions?: readonly string[] | undefined;
}

/** A query of a caller. The gateway adds the allowed scopes and the byte limits. */
export type CallerQuery<Query> = Omit<Query, 'within' | 'max_bytes' | 'max_content_bytes'>;

/** A search of one user or of several (Decision 40). */
export type UsersQuery = Omit<CallerQuery<TextQuery>, 'user_id' | 'vector'> & {
  readonly user_id: string | readonly string[];
  /** Whether only memories are found that are current among the best `CANDIDATES` (Decision 12). */
  readonly current?: boolean;
};

/** A list without its pages. */
export type MapQuery = Omit<CallerQuery<ListQuery>, 'limit' | 'after'>;

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
   * Adds the given memories. Outcomes in order: errors keep their places. Idempotent with `key`. Throws if the backend failed
   * and nothing was added.
   */
  batch?(
    given: readonly (NewMemory | OmpError)[],
    key: Omit<IdempotencyKey, 'caller'> | undefined,
    call: Call,
  ): Promise<(Memory | OmpError)[]>;
  /**
   * Like `update` and `delete`: throws `not_found` if there is no such record or the caller may not access its user, and
   * `scope_denied` if the grants do not cover its scope.
   */
  get(target: Target, call: Call): Promise<Memory>;
  update?(target: Target, patch: MemoryPatch, call: Call): Promise<Memory>;
  delete?(target: Target, call: Call): Promise<void>;
  list?(query: CallerQuery<ListQuery>, call: Call): Promise<Part<Memory>>;
  /** `more`: hits are left out, since they exceed the byte limit of a response. */
  search?(query: UsersQuery, call: Call): Promise<Part<ExplainedHit>>;
  context?(query: Omit<UsersQuery, 'limit' | 'current'>, options: ContextOptions, call: Call): Promise<ContextBlock>;
  audit?(query: CallerQuery<AuditQuery>, call: Call): Promise<StoredEntry[]>;
  users?(query: Omit<UserListQuery, 'users' | 'within'>, call: Call): Promise<UserPart>;
  stats?(query: Omit<StatsQuery, 'within'>, call: Call): Promise<UserStats>;
  /** The newest memories on a plane (Decision 42). */
  map?(query: MapQuery, call: Call): Promise<MemoryMap>;
  /** Throws `scope_denied` unless the caller may delete in every scope of the user. Returns the number of memories. */
  erase?(user_id: string, call: Call): Promise<number>;
  /** Throws `scope_denied` unless the caller may read all scopes, and all users or that of the query. */
  export?(query: CallerQuery<ScanQuery>, call: Call): Promise<ScanPart>;
  /** Throws `scope_denied` unless the caller may write all scopes of all users. Outcomes in order. */
  import?(items: readonly MovedMemory[], replace: boolean, call: Call): Promise<(ImportOutcome | OmpError)[]>;
  /** Throws `scope_denied` unless the caller may read the memories of all users: metrics are about them all (Decision 33). */
  metrics?: Scrape;
  /** The verbs on keys throw `scope_denied` unless the caller has the grant `admin:*` (Decision 41). Newest first. */
  listKeys?(query: KeyListQuery, call: Call): Promise<StoredKey[]>;
  /** Throws `invalid_request` if the name exists. */
  createKey?(key: NewKey, call: Call): Promise<StoredKey>;
  /** Throws `not_found` for an unknown id, `scope_denied` for the key of the caller. */
  revokeKey?(id: string, call: Call): Promise<StoredKey>;
}

export interface VerbsOptions {
  readonly provider: Memories;
  readonly auditQueue: AuditQueue;
  readonly shares: ReadShares;
  /** Undefined: metrics are not collected. */
  readonly scrape?: Scrape | undefined;
}

/** `unchanged`: it is stored already, as it is; `exists`: its id is, with other fields. */
export type ImportOutcome = 'stored' | 'unchanged' | 'exists';

/** A record or an audit entry. */
type Owned = Pick<AuditEntry, 'user_id' | 'scope'>;

/** Usual size of an audit entry. */
const ENTRY_BYTES = 300;
/** Longest content of a context candidate, in bytes per token of the budget: a longer one cannot fit. */
const BYTES_PER_TOKEN = 32;
/** Hits of which a context, and a search of current memories, take the best: the largest limit of a search. */
const CANDIDATES = 100;

/**
 * Enforces the grants of a caller, in one place for all providers. The rule is part of every query and is checked again on
 * every returned record. A caller gets the same results as if the store held only the records that it may read.
 */
export function verbsFor(principal: Principal, { provider, auditQueue, shares, scrape }: VerbsOptions): Verbs {
  const { grants } = principal;
  const { update, delete: remove, list, search } = provider;
  const { audited, read } = auditQueue;
  const access = accessOf(principal, provider, shares);
  const { factsOf, refTo, readable, writable, admitsRead, admitsWrite, requireAccess } = access;
  const { accessError, absenceError } = access;

  /** Checks `read` before the change, and that nobody changes the memory between the two, where the backend has versions. */
  const updateReadable = async (target: Target, patch: MemoryPatch, call: Call, facts: AuditFacts) => {
    for (let retries = 3; ; retries--) {
      const found = await provider.get(refTo(target, grants.read), call);
      if (!found) throw await absenceError(grants.read, target, call, facts);
      const versions = (target.versions ?? [found.updated_at]).filter((version) => version === found.updated_at);
      const checked = provider.capabilities.etags ? { ...target, versions } : target;
      try {
        return await update?.(refTo(checked, grants.write), patch, call);
      } catch (error) {
        const isOurs = error instanceof OmpError && error.version !== undefined && target.versions === undefined;
        if (!isOurs || retries === 0) throw error;
      }
    }
  };

  return {
    ...(provider.read_only !== undefined && { read_only: provider.read_only }),
    ...addingVerbs(principal, provider, access, audited),
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
          const reveals = patch.scope !== undefined && admitsRead(patch.scope) && !readsAllItWrites(grants);
          const updated = await (reveals
            ? updateReadable(target, patch, call, facts)
            : update(refTo(target, grants.write), patch, call));
          if (!updated) throw await absenceError(grants.write, target, call, facts);
          writable(updated, target.user_id);
          return admitsRead(updated.scope) ? updated : withoutHidden(updated, patch);
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
    ...(list && listVerbs(list, provider, access, audited)),
    ...(search && searchVerbs(search, provider, access, audited)),
    ...(read && {
      audit: (query, call) =>
        audited('audit', factsOf(query), call, async () => {
          requireAccess(query.user_id, grants.read);
          const page = async () => {
            const entries = await read({ ...query, within: grants.read }, call);
            for (const entry of entries) readable(entry, query.user_id);
            return { result: entries, count: 0, bytes: entries.length * ENTRY_BYTES };
          };
          return shares.records(query.limit, call, page, ENTRY_BYTES);
        }),
    }),
    ...userVerbs(principal, provider, access, audited),
    ...movingVerbs(principal, provider, access, audited),
    ...keyVerbs(principal, provider, audited),
    ...(scrape && {
      async metrics() {
        if (principal.users !== null || grants.read !== null) throw new OmpError('scope_denied', NO_METRICS);
        return scrape();
      },
    }),
  };
}

/** Whether every scope that the caller may write can be read, by comparison of the globs. */
const readsAllItWrites = ({ read, write }: Principal['grants']): boolean =>
  read === null || (write?.every((glob) => read.includes(glob)) ?? false);

/** What a caller who may not read a memory gets of it (Decision 14): what names it, and what the caller sent itself. */
const withoutHidden = (
  { id, user_id, created_at, updated_at, status }: Memory,
  { extensions: _, ...sent }: MemoryPatch,
): Memory => ({
  ...{ id, content: '', user_id, created_at, updated_at, scope: null, tags: [], source: null, confidence: null },
  ...{ valid_from: null, valid_to: null, supersedes: [], embedding_model: null, status, extensions: {} },
  ...sent,
});

/** Of the gateway, not of a memory: users and scopes of the caller do not matter (Decision 41). */
function keyVerbs(
  { id: caller, grants }: Principal,
  { keys }: Memories,
  audited: AuditQueue['audited'],
): Pick<Verbs, 'listKeys' | 'createKey' | 'revokeKey'> {
  if (!keys) return {};
  const callerOf = (id: string) => `key:${id}`;
  const asAdmin = <Result>(action: AuditAction, call: Call, work: () => Promise<Result>): Promise<Result> =>
    audited(action, { user_id: null, memory_id: null, scope: null }, call, async () => {
      if (!grants.admin) throw new OmpError('scope_denied', NOT_ADMIN);
      // A revoked key is accepted for some seconds: too long for one that could make itself a successor.
      const own = await keys.find(caller.slice(callerOf('').length), call);
      if (own && own.revoked_at !== null) throw new OmpError('unauthorized', 'the API key is revoked');
      return work();
    });
  return {
    listKeys: (query, call) => asAdmin('list_keys', call, () => keys.list(query, call)),
    createKey: (key, call) => asAdmin('create_key', call, () => keys.create(key, call)),
    revokeKey: (id, call) =>
      asAdmin('revoke_key', call, async () => {
        if (caller === callerOf(id)) throw new OmpError('scope_denied', OWN_KEY);
        // The store revokes by name too.
        const revoked = (await keys.find(id, call)) && (await keys.revoke(id, call));
        if (!revoked) throw new OmpError('not_found', 'no stored key has this id');
        return revoked;
      }),
  };
}

const NO_METRICS = 'metrics are about all users: they need a key for all users with the grant read:*';
const NOT_ADMIN =
  'managing keys needs a key with the grant admin:*; make one with: omp-gateway keys create NAME --grant "admin:*"';
const OWN_KEY =
  'a key cannot revoke itself; use another key with the grant admin:*, or: omp-gateway keys revoke NAME|ID';

/** List, and the map of what it finds. */
function listVerbs(
  list: NonNullable<Memories['list']>,
  { vectorsOf }: Memories,
  { factsOf, readable, requireAccess, bounds, shares }: Access,
  audited: AuditQueue['audited'],
): Pick<Verbs, 'list' | 'map'> {
  const listAllowed = async (
    { user_id, limit, ...rest }: CallerQuery<ListQuery>,
    call: Call,
  ): Promise<Part<Memory>> => {
    requireAccess(user_id, bounds.within, rest.scope);
    return shares.records(limit, call, async () => {
      // One more record than the limit tells whether the list continues.
      const found = await list({ user_id, limit: limit + 1, ...rest, ...bounds }, call);
      for (const memory of found) readable(memory, user_id);
      return partOf(found, sizeWithin(found, MAX_ANSWER_BYTES), limit);
    });
  };
  return {
    list: (query, call) => audited('list', factsOf(query), call, () => listAllowed(query, call)),
    ...(vectorsOf && {
      map: (query, call) =>
        audited('map', factsOf(query), call, () =>
          shares.alone(call, () =>
            drawMap(
              {
                page: (after, limit) => listAllowed({ ...query, limit, ...(after && { after }) }, call),
                vectorsOf: (ids) => vectorsOf({ ids, user_id: query.user_id, within: bounds.within }, call),
              },
              call,
            ),
          ),
        ),
    }),
  };
}

/** Over all memories of a user (Decisions 37 and 38). */
function userVerbs(
  { users, grants }: Principal,
  { name, users: listUsers, userStats, erase }: Memories,
  { factsOf, mayAccess, admitsRead, requireAccess }: Access,
  audited: AuditQueue['audited'],
): Pick<Verbs, 'users' | 'stats' | 'erase'> {
  return {
    ...(listUsers && {
      users: (query, call) =>
        audited('users', { user_id: null, memory_id: null, scope: null }, call, async () => {
          if (grants.read?.length === 0) throw denied();
          const found = await listUsers({ ...query, users, within: grants.read }, call);
          if (!found.items.every(({ user_id }) => mayAccess(user_id))) throw mismatch(name);
          return found;
        }),
    }),
    ...(userStats && {
      stats: (query, call) =>
        audited('stats', factsOf(query), call, async () => {
          requireAccess(query.user_id, grants.read);
          const stats = await userStats({ ...query, within: grants.read }, call);
          if (!stats.scopes.every(({ scope }) => admitsRead(scope))) throw mismatch(name);
          return stats;
        }),
    }),
    ...(erase && {
      erase: (user_id, call) =>
        audited('erase', factsOf({ user_id }), call, async () => {
          if (!mayAccess(user_id) || grants.delete !== null) throw denied();
          return erase(user_id, call);
        }),
    }),
  };
}

/** Out of the store and into it (Decision 43). */
function movingVerbs(
  { users, grants }: Principal,
  { scan, restore, get }: Memories,
  { mayAccess, shares }: Access,
  audited: AuditQueue['audited'],
): Pick<Verbs, 'export' | 'import'> {
  const everything: AuditFacts = { user_id: null, memory_id: null, scope: null };
  return {
    ...(scan && {
      export: (query, call) =>
        audited('export', { ...everything }, call, async (facts) => {
          const mayRead = query.user_id === undefined ? users === null : mayAccess(query.user_id);
          if (mayRead) facts.user_id = query.user_id ?? null;
          if (!mayRead || grants.read !== null) throw denied();
          return shares.alone(call, () => scan({ ...query, max_bytes: MAX_ANSWER_BYTES }, call));
        }),
    }),
    ...(restore && {
      import: (items, replace, call) =>
        audited('import', everything, call, async () => {
          // A caller of some users would learn which ids others have.
          if (users !== null || grants.write !== null) throw denied();
          const outcomes = await restore(items, replace, call);
          const known: (ImportOutcome | OmpError)[] = [];
          for (const [i, outcome] of outcomes.entries()) {
            const { memory } = items[i] as MovedMemory;
            if (outcome !== false) known.push(outcome === true ? 'stored' : outcome);
            else known.push(isSameRecord(memory, await get(anyOf(memory), call)) ? 'unchanged' : 'exists');
          }
          return known;
        }),
    }),
  };
}

const anyOf = ({ id }: Memory): Ref => ({ id, users: null, within: null });

/** `add` and `batch`. */
function addingVerbs(
  { id }: Principal,
  { name, add, addIdempotent, batch }: Memories,
  { factsOf, mayAccess, admitsWrite, writable }: Access,
  audited: AuditQueue['audited'],
): Pick<Verbs, 'add' | 'batch'> {
  const mayAdd = ({ user_id, scope }: NewMemory) => mayAccess(user_id) && admitsWrite(scope);
  const storedKey = (key: Omit<IdempotencyKey, 'caller'>): IdempotencyKey => {
    if (!addIdempotent) throw unsupported(name, 'Idempotency-Key');
    return { ...key, caller: id };
  };
  return {
    ...(add && {
      add: (input, key, call) =>
        audited('add', factsOf(input), call, async () => {
          if (!mayAdd(input)) throw denied();
          const stored = key && storedKey(key);
          const memory = await (stored && addIdempotent ? addIdempotent(input, stored, call) : add(input, call));
          return writable(memory, input.user_id);
        }),
    }),
    ...(batch && {
      async batch(given, key, call) {
        const allowed = given.map((input) => (input instanceof OmpError || !mayAdd(input) ? undefined : input));
        const adding = (async () => {
          if (!allowed.some(Boolean)) return [];
          return batch(allowed, key && storedKey(key), call);
        })();
        const outcomes = await Promise.allSettled(
          given.map(async (input, place) => {
            if (input instanceof OmpError) throw input;
            return audited('add', factsOf(input), call, async () => {
              if (!allowed[place]) {
                // The audit entries of failures always follow those of the added memories.
                await adding.catch(() => {});
                throw denied();
              }
              const outcome = (await adding)[place];
              if (outcome instanceof OmpError) throw outcome;
              return writable(outcome as Memory, input.user_id);
            });
          }),
        );
        await adding;
        return outcomes.map((outcome) => {
          if (outcome.status === 'fulfilled') return outcome.value;
          if (outcome.reason instanceof OmpError) return outcome.reason;
          throw outcome.reason;
        });
      },
    }),
  };
}

type Access = ReturnType<typeof accessOf>;

/** What a caller may access, for all verbs. */
function accessOf({ users, grants }: Principal, provider: Memories, shares: ReadShares) {
  const mayAccess = (user: string) => users === null || users.includes(user);

  /** The user is not recorded unless the caller may access it. */
  const factsOf = ({ user_id, scope = null }: { user_id: string; scope?: string | null | undefined }): AuditFacts => ({
    user_id: mayAccess(user_id) ? user_id : null,
    memory_id: null,
    scope,
  });
  const refTo = ({ id, user_id, versions }: Target, within: Within): Ref => {
    if (user_id === undefined) return { id, users, within, versions };
    return { id, users: mayAccess(user_id) ? [user_id] : [], within, versions };
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
    if (within !== null && !within.some((granted) => globsOverlap(granted, glob ?? '*'))) throw denied();
  };

  return {
    ...{ mayAccess, factsOf, refTo, requireAccess, accessError, absenceError },
    readable: checkedBy(grants.read),
    writable: checkedBy(grants.write),
    admitsRead: withinMatcher(grants.read),
    admitsWrite: withinMatcher(grants.write),
    bounds: { within: grants.read, max_bytes: MAX_ANSWER_BYTES },
    shares,
  };
}

/** Search and context, of one user or of several (Decision 40). */
function searchVerbs(
  search: NonNullable<Memories['search']>,
  provider: Memories,
  { factsOf, readable, requireAccess, bounds, shares }: Access,
  audited: AuditQueue['audited'],
): Required<Pick<Verbs, 'search' | 'context'>> {
  const { name, queryVector, capabilities } = provider;
  const searchAllowed = async (
    { user_id, text, ...rest }: Omit<UsersQuery, 'current'> & Pick<TextQuery, 'max_content_bytes'>,
    call: Call,
  ): Promise<Part<SearchHit>> => {
    const owners = [user_id].flat();
    for (const owner of owners)
      requireAccess(owner, bounds.within, rest.scope === undefined ? undefined : `${rest.scope}*`);
    if (rest.explain && !capabilities.explain) throw unsupported(name, 'explain');
    const query = { text, ...rest, ...bounds };
    return shares.records(query.limit, call, async () => {
      const vector = owners.length > 1 ? await queryVector?.(query, call) : undefined;
      const hits = await bestOf(owners, query, async (owner) => {
        const found = await search({ user_id: owner, ...query, vector }, call);
        for (const { memory } of found) readable(memory, owner);
        return found;
      });
      return partOf(hits, sizeWithin(hits.map(recordOf), MAX_ANSWER_BYTES));
    });
  };
  const candidates = Math.min(CANDIDATES, capabilities.max_search_results ?? CANDIDATES);
  /** Queues one audit entry for each user, in the order of the request. */
  const auditedForEach = <Result>(
    action: Verb,
    query: Omit<UsersQuery, 'limit' | 'current'>,
    call: Call,
    work: () => Promise<Result>,
  ) =>
    [query.user_id]
      .flat()
      .reduce((inner, user_id) => () => audited(action, factsOf({ ...query, user_id }), call, inner), work)();

  return {
    search: ({ current, limit, ...query }, call) =>
      auditedForEach('search', query, call, async () => {
        const found = await searchAllowed({ limit: current ? candidates : limit, ...query }, call);
        const hits = current
          ? currentHits(found.items, new Date()).slice(0, limit)
          : markSuperseded(found.items, new Date());
        const items = query.explain ? await explainHits(hits, query.text, provider, call) : hits;
        // What its bytes left out of the candidates is none of the best if there are enough.
        return { items, more: found.more && items.length < limit };
      }),
    context: (query, options, call) =>
      auditedForEach('context', query, call, async () => {
        const { budget, min_score = capabilities.vector_search ? MIN_SIMILARITY : 0 } = options;
        const max_content_bytes = budget * BYTES_PER_TOKEN;
        const { items } = await searchAllowed({ limit: candidates, max_content_bytes, ...query }, call);
        return toContext(items, { budget, min_score }, new Date(), call);
      }),
  };
}

/** The owner is recorded once the record is known (`recordFacts`): a user that the caller claims does not enter the log. */
const factsOfId = ({ id }: Target): AuditFacts => ({ user_id: null, memory_id: id, scope: null });
function recordFacts(facts: AuditFacts, memory: Memory): Memory {
  facts.user_id = memory.user_id;
  facts.scope = memory.scope;
  return memory;
}

/** The first part, of at most `limit` items. */
function partOf<Item>(
  found: readonly Item[],
  { count, bytes }: ReturnType<typeof sizeWithin>,
  limit = count,
): SizedResult<Part<Item>> {
  const items = found.slice(0, Math.min(limit, count));
  return { result: { items, more: found.length > items.length }, count, bytes };
}

const recordOf = ({ memory }: SearchHit): Memory => memory;

/**
 * The best hits of several users. Searches one user after another: concurrency limits and fair queues count requests, so a
 * request must not do more work at once.
 */
async function bestOf(
  users: readonly string[],
  { limit, max_bytes }: Pick<TextQuery, 'limit' | 'max_bytes'>,
  searchUser: (user: string) => Promise<SearchHit[]>,
): Promise<SearchHit[]> {
  const [first, ...others] = users as [string, ...string[]];
  let hits = await searchUser(first);
  // What a search left out for its bytes ranks below the hit that exceeded them, so it is left out here too.
  for (const user of others) hits = upToBytes(mergeHits(hits, await searchUser(user), limit), max_bytes, recordOf);
  return hits;
}

const mismatch = (provider: string) =>
  providerError(provider, 'the backend returned records that do not match the query');
const unsupported = (provider: string, what: string) =>
  new OmpError('unsupported_capability', `the provider does not support ${what}`, { provider });
const notFound = () => new OmpError('not_found', 'no memory has this id');
const denied = () => new OmpError('scope_denied', 'the key lacks the permission for this user or scope');
