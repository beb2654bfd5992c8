import {
  type Call,
  invalidRequest,
  type ListQuery,
  METHODS,
  type Memory,
  type MemoryVersion,
  type NewMemory,
  OmpError,
  type Position,
  type Provider,
  type Ref,
  type Restricted,
  type SearchHit,
  type SearchQuery,
  type UserSummary,
  type Visible,
  type Within,
} from '#contract';
import {
  countWithin,
  createKeyedMutex,
  hasWildcard,
  type KeyedMutex,
  literalPrefix,
  visibleMatcher,
  withinMatcher,
} from '#toolbox';
import { escapeTag, fromStoredTags, tagsOfExactScope, tagsOfLiteral, toStoredTags } from './scope-tags.ts';
import { NOTHING, SAME, SAME_ANSWER, translate } from './translate.ts';

/** Records read per requested record when the gateway filters itself; each further read is larger by this factor. */
const OVERFETCH = 4;
const LARGEST_BATCH = 500;
/** Maximum bytes that one search reads to filter itself. */
const MAX_SEARCHED_BYTES = 64 * 1024 * 1024;

/**
 * Emulates hierarchical scopes on a provider with tags, with the same results as native scopes, including partial segments
 * and globs. The backend filters by ancestor tags where these suffice. The gateway filters the rest and reads on until the
 * page is full or the records end.
 */
export function emulateScopes(inner: Provider): Provider {
  const { capabilities, delete: remove, list, search, users } = inner;
  const encoded = translate(inner, METHODS, {
    request: { ...SAME, within: () => null, outside: () => undefined, input: encode, memory: encode },
    answer: { ...SAME_ANSWER, memory: decode },
  });
  const { get, update, versions } = encoded;
  const listScoped = list && listWith(list, capabilities.max_list_scan);
  // The scope of a record must not change between its check and the write. Scope and tags are patched together.
  const mutex = createKeyedMutex();
  const getAllowed = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const memory = await get(ref, call);
    return memory && visibleMatcher(ref)(memory.scope) ? memory : undefined;
  };
  // Each method that `encoded` would ask in any scope.
  const restricted: { [Member in Restricted<typeof METHODS>]: Provider[Member] } = {
    get: getAllowed,
    update: update && updateWith(getAllowed, update, mutex),
    delete:
      remove &&
      (async (ref, call) => {
        if (!isRestricted(ref)) return remove(ref, call);
        return mutex(ref.id, async () => {
          call.throwIfAborted();
          return (await getAllowed(ref, call)) !== undefined && remove(inAnyScope(ref), call);
        });
      }),
    list: listScoped,
    search: search && searchWith(search, capabilities.max_search_results),
    // To the store, memories of different scopes are one conversation: one outside the allowed scopes would hide the next.
    neighbours: undefined,
    users: users && list && usersWith(users, listWith(list, null)),
    // The backend would count stored tags, and over all scopes.
    userStats: undefined,
    versions: versions && {
      async list({ ref, limit, max_bytes, before }, call) {
        const admits = visibleMatcher(ref);
        const page: MemoryVersion[] = [];
        for (let from = before; ; ) {
          const found = await versions.list({ ref, before: from, limit, max_bytes }, call);
          if (!found || !admits(found.current.scope)) return undefined;
          page.push(...found.versions.filter(({ memory }) => admits(memory.scope)));
          const isFull = page.length >= limit || isCut(page.map(recordOf), max_bytes);
          if (isFull || found.versions.length === 0) return { ...found, versions: page.slice(0, limit) };
          from = found.versions.at(-1)?.version;
        }
      },
      purge: (ref, call) =>
        mutex(ref.id, async () => {
          call.throwIfAborted();
          return (await getAllowed(ref, call)) && versions.purge(ref, call);
        }),
      writtenIn: versions.writtenIn,
    },
  };
  // Its writes check what is stored.
  return { ...encoded, ...restricted, ...NO_LOG, check: undefined };
}

/** Its entries, of changes or of failed requests, would have no scopes, or others. Webhooks deliver them. */
const NO_LOG = { audit: undefined, changes: undefined, changesHeld: undefined, webhooks: undefined };

const decode = (memory: Memory): Memory => ({ ...memory, ...fromStoredTags(memory.tags) });
const encode = <Fields extends NewMemory>(input: Fields): Fields => ({
  ...input,
  scope: null,
  tags: toStoredTags(input.tags, input.scope),
});
const inAnyScope = <Query extends Visible>(query: Query): Query => ({ ...query, within: null, outside: undefined });
const isRestricted = ({ within, outside }: Visible): boolean => within !== null || outside !== undefined;

/** Scope and tags share one list in the backend, so a patch of one must include the other. `update`: in any scope. */
function updateWith(
  getAllowed: Provider['get'],
  update: NonNullable<Provider['update']>,
  mutex: KeyedMutex,
): Provider['update'] {
  // The memory as read before is decoded, so the provider reads it again.
  return async ({ ref, patch, vector, limits }, call) => {
    const retagged = patch.scope !== undefined || patch.tags !== undefined;
    if (!retagged && !isRestricted(ref)) return update({ ref, patch, vector, limits }, call);
    return mutex(ref.id, async () => {
      call.throwIfAborted();
      const current = await getAllowed(ref, call);
      if (!current) return undefined;
      const { scope = current.scope, tags = current.tags, ...rest } = patch;
      const encodedPatch = retagged ? { ...rest, tags: toStoredTags(tags, scope) } : rest;
      return update({ ref, patch: encodedPatch, vector, limits }, call);
    });
  };
}

/** Tags that all records of a glob have. Without a wildcard they decide the match alone. */
function tagsOfGlob(glob: string): string[] {
  if (glob === '') return [];
  return hasWildcard(glob) ? tagsOfLiteral(literalPrefix(glob)) : tagsOfExactScope(glob);
}

/** Tags that all records in the allowed scopes have. Several globs have no tag in common. */
const tagsOfWithin = (within: Within): string[] => (within?.length === 1 ? tagsOfGlob(within[0] as string) : []);

/** Whether tags alone decide which records match the glob. */
const isExact = (glob: string): boolean => glob !== '' && !hasWildcard(glob);

function listWith(list: NonNullable<Provider['list']>, max: number | null): NonNullable<Provider['list']> {
  // One record more than the bound tells whether the list continues.
  const reach = max === null ? Number.POSITIVE_INFINITY : max + 1;
  return async ({ scope, within, outside, ...query }, call) => {
    const globs = scope === undefined ? null : [scope].flat();
    const tags = [...query.tags.map(escapeTag), ...tagsOfWithin(globs), ...tagsOfWithin(within)];
    // A root store has next to nothing where others are mounted, so `outside` is no reason to read more at once.
    const filtered = within !== null || (globs !== null && !(globs.length === 1 && isExact(globs[0] as string)));
    const admits = visibleMatcher({ within, outside });
    const matches = withinMatcher(globs);
    const page: Memory[] = [];
    let after: Position | undefined = query.after;
    let readCount = 0;
    for (let size = query.limit; ; ) {
      call.throwIfAborted();
      if (filtered) size = Math.min(size * OVERFETCH, LARGEST_BATCH, reach - readCount);
      const down: ListQuery = { ...query, tags, within: null, limit: size, ...(after && { after }) };
      const batch: Memory[] = await list(down, call);
      for (const memory of batch.map(decode)) if (matches(memory.scope) && admits(memory.scope)) page.push(memory);
      const isFull = page.length >= query.limit || isCut(page, query.max_bytes);
      if (isFull || (batch.length < size && !isCut(batch, query.max_bytes))) return page.slice(0, query.limit);
      readCount += batch.length;
      // The page is not full and the bound is reached: a shorter page would be a silently partial answer.
      if (readCount >= reach) throw invalidRequest(tooManyToFilter(globs !== null));
      after = batch.at(-1);
    }
  };
}

/** Users that are counted for one part, if the caller may not read all of their memories. */
const COUNTED_USERS = 20;

/** The backend counts memories in all scopes; those that a restricted caller may read are counted here, by listing them. */
function usersWith(
  users: NonNullable<Provider['users']>,
  list: NonNullable<Provider['list']>,
): NonNullable<Provider['users']> {
  const count = async (user_id: string, { within, outside }: Visible, call: Call): Promise<UserSummary> => {
    const page = {
      user_id,
      within,
      ...(outside && { outside }),
      tags: [],
      limit: LARGEST_BATCH,
      max_bytes: MAX_SEARCHED_BYTES,
    };
    let summary: UserSummary = { user_id, count: 0, last_write: '' };
    for (let after: Position | undefined; ; ) {
      const memories = await list({ ...page, ...(after && { after }) }, call);
      const last_write = memories.reduce(
        (latest, { updated_at }) => (updated_at > latest ? updated_at : latest),
        summary.last_write,
      );
      summary = { user_id, count: summary.count + memories.length, last_write };
      if (memories.length < page.limit && !isCut(memories, page.max_bytes)) return summary;
      after = memories.at(-1);
    }
  };
  return async (query, call) => {
    if (query.within === null && !query.outside?.length) return users(query, call);
    const limit = Math.min(query.limit, COUNTED_USERS);
    const { items, next } = await users({ ...inAnyScope(query), limit }, call);
    const counted: UserSummary[] = [];
    for (const { user_id } of items) counted.push(await count(user_id, query, call));
    return { items: counted.filter(({ count }) => count > 0), next };
  };
}

function searchWith(search: NonNullable<Provider['search']>, max: number | null): Provider['search'] {
  const raise = (hit: SearchHit): SearchHit => ({ ...hit, memory: decode(hit.memory) });
  return async ({ scope, within, outside, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    const filtered = scope !== undefined || within !== null;
    tags.push(...(scope === undefined ? [] : tagsOfLiteral(scope)), ...tagsOfWithin(within));
    const admits = visibleMatcher({ within, outside });
    let window = filtered ? query.limit * OVERFETCH : query.limit;
    for (let max_bytes = query.max_bytes; ; ) {
      call.throwIfAborted();
      const limit = Math.min(window, max ?? window);
      const down: SearchQuery = { ...query, tags, within: null, limit, max_bytes };
      const hits = await search(down, call);
      const page = hits
        .map(raise)
        .filter(({ memory }) => (scope === undefined || memory.scope?.startsWith(scope)) && admits(memory.scope));
      if (page.length >= query.limit || isCut(page.map(recordOf), query.max_bytes)) return page.slice(0, query.limit);
      const cut = isCut(hits.map(recordOf), max_bytes);
      if (!cut && hits.length < limit) return page;
      // The page is not full and the limit is reached: a shorter page would be a silently partial answer.
      if (cut ? max_bytes === MAX_SEARCHED_BYTES : limit === max) throw invalidRequest(tooFar(scope));
      if (cut) max_bytes = Math.min(max_bytes * OVERFETCH, MAX_SEARCHED_BYTES);
      else window *= OVERFETCH;
    }
  };
}

const recordOf = ({ memory }: Pick<SearchHit, 'memory'>): Memory => memory;
/** Whether the records exceed the byte limit: the backend may have left out more. */
const isCut = (records: readonly Memory[], maxBytes: number): boolean =>
  countWithin(records, maxBytes) < records.length;

const tooManyToFilter = (hasScope: boolean): string =>
  !hasScope
    ? 'too many memories outside the allowed scopes; add a scope, or narrow the list by since and until'
    : 'scope: too many memories do not match; begin the glob with whole segments ("coding/*"), or narrow the list by since and until';

const tooFar = (scope: string | undefined): string =>
  scope === undefined
    ? 'too many memories outside the allowed scopes rank higher; add a scope or lower limit'
    : `scope: too many memories outside this prefix rank higher; end it at a whole segment ("${scope.split('/')[0]}/") or lower limit`;

/**
 * For a provider without scopes and without tags to emulate them. All its records are unscoped. Requests that use a scope
 * are rejected with `unsupported_capability`; callers with restricted scopes find nothing, unless records without a scope are among
 * them.
 */
export function rejectScopes(inner: Provider): Provider {
  const { name } = inner;
  const reject = (scope: string | null | undefined) => {
    if (scope != null) {
      throw new OmpError('unsupported_capability', 'scope: the provider does not support scopes', { provider: name });
    }
  };
  const unscoped = <Of extends { readonly scope?: string | null }>(fields: Of): Of => {
    reject(fields.scope);
    return fields;
  };
  return {
    ...translate(inner, METHODS, {
      request: {
        ...SAME,
        globs(globs) {
          if (!withinMatcher([globs].flat())(null)) reject('');
          return undefined;
        },
        prefix(prefix) {
          reject(prefix);
          return undefined;
        },
        within: (within) => (withinMatcher(within)(null) ? null : NOTHING),
        outside: () => undefined,
        input: unscoped,
        patch: unscoped,
      },
      answer: SAME_ANSWER,
    }),
    ...NO_LOG,
    // Imports are checked by it alone.
    check(input, vector) {
      reject(input.scope);
      inner.check?.(input, vector);
    },
  };
}
