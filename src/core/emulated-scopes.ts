import {
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  type MemoryVersion,
  type NewMemory,
  NO_STATS,
  OmpError,
  type Position,
  type Provider,
  type Ref,
  type SearchHit,
  type SearchQuery,
  type UserSummary,
  type Visible,
  type Within,
  withChanges,
} from '#contract';
import {
  countWithin,
  createKeyedMutex,
  hasWildcard,
  type KeyedMutex,
  literalPrefix,
  visibleMatcher,
  withinMatcher,
  withMemories,
} from '#toolbox';

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
  const { capabilities, add, batch, update, delete: remove, list, search } = inner;
  const { export: exportPart, import: importMemories, users, versions } = inner;
  const listScoped = list && listWith(list, capabilities.max_list_scan);
  // The scope of a record must not change between its check and the write. Scope and tags are patched together.
  const mutex = createKeyedMutex();
  const getAllowed = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const record = await inner.get(inAnyScope(ref), call);
    const memory = record && decode(record);
    return memory && visibleMatcher(ref)(memory.scope) ? memory : undefined;
  };
  return withChanges<UnscopedMember | 'erase' | 'holdings'>(inner, {
    // Its writes check what is stored.
    check: undefined,
    add:
      add && (async (request, call) => decodeIfPresent(await add({ ...request, input: encode(request.input) }, call))),
    batch:
      batch &&
      (async ({ items, ...rest }, call) => {
        const encodedItems = items.map((item) => ({ ...item, input: encode(item.input) }));
        const outcomes = await batch({ items: encodedItems, ...rest }, call);
        return outcomes?.map((outcome) => (outcome instanceof OmpError ? outcome : decode(outcome)));
      }),
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
    export:
      exportPart &&
      (async (query, call) => {
        const part = await exportPart(query, call);
        return { ...part, items: part.items.map((item) => withMemories(item, decode)) };
      }),
    import:
      importMemories &&
      (({ items, replace }, call) =>
        importMemories({ items: items.map((item) => withMemories(item, encode)), replace }, call)),
    versions: versions && {
      async list({ ref, limit, max_bytes, before }, call) {
        const admits = visibleMatcher(ref);
        const page: MemoryVersion[] = [];
        for (let from = before; ; ) {
          const found = await versions.list({ ref: inAnyScope(ref), before: from, limit, max_bytes }, call);
          const current = found && decode(found.current);
          if (!current || !admits(current.scope)) return undefined;
          const read = found.versions.map((one) => withMemories(one, decode));
          page.push(...read.filter(({ memory }) => admits(memory.scope)));
          const isFull = page.length >= limit || isCut(page.map(recordOf), max_bytes);
          if (isFull || read.length === 0) return { ...found, current, versions: page.slice(0, limit) };
          from = read.at(-1)?.version;
        }
      },
      purge: (ref, call) =>
        mutex(ref.id, async () => {
          call.throwIfAborted();
          return (await getAllowed(ref, call)) && versions.purge(inAnyScope(ref), call);
        }),
      writtenIn: versions.writtenIn,
    },
    // The provider's audit entries would have no scopes.
    audit: undefined,
    changes: undefined,
    changesHeld: undefined,
  });
}

/** The members of a provider that have nothing to do with scopes. */
type UnscopedMember =
  | 'name'
  | 'capabilities'
  | 'read_only'
  | 'keyUse'
  | 'userUsage'
  | 'freezing'
  | 'keys'
  | 'webhooks'
  | 'embeddingUsage'
  | 'stats'
  | 'ingestion'
  | 'backlog'
  | 'ping'
  | 'close';

const decode = (memory: Memory): Memory => ({ ...memory, ...fromStoredTags(memory.tags) });
const decodeIfPresent = (memory: Memory | undefined): Memory | undefined => memory && decode(memory);
const encode = <Fields extends NewMemory>(input: Fields): Fields => ({
  ...input,
  scope: null,
  tags: toStoredTags(input.tags, input.scope),
});
const inAnyScope = <Query extends Visible>(query: Query): Query => ({ ...query, within: null, outside: undefined });
const isRestricted = ({ within, outside }: Visible): boolean => within !== null || outside !== undefined;

/** Scope and tags share one list in the backend, so a patch of one must include the other. */
function updateWith(
  getAllowed: Provider['get'],
  update: NonNullable<Provider['update']>,
  mutex: KeyedMutex,
): Provider['update'] {
  // The memory as read before is decoded, so the provider reads it again.
  return async ({ ref, patch, vector, limits }, call) => {
    const retagged = patch.scope !== undefined || patch.tags !== undefined;
    if (!retagged && !isRestricted(ref)) return decodeIfPresent(await update({ ref, patch, vector, limits }, call));
    return mutex(ref.id, async () => {
      call.throwIfAborted();
      const current = await getAllowed(ref, call);
      if (!current) return undefined;
      const { scope = current.scope, tags = current.tags, ...rest } = patch;
      const encodedPatch = retagged ? { ...rest, tags: toStoredTags(tags, scope) } : rest;
      return decodeIfPresent(await update({ ref: inAnyScope(ref), patch: encodedPatch, vector, limits }, call));
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
 * Encoding of a scope as tags. `coding/preferences` becomes
 *
 *     omp:scope:coding/preferences     the scope itself, decoded when the record is read
 *     omp:under:coding                 one for every ancestor, so that the backend can filter by whole-segment prefixes
 *
 * A caller's tag that begins with the reserved prefix is stored escaped: it remains an ordinary tag for the caller and
 * cannot forge a scope.
 */
const RESERVED = 'omp:';
const SCOPE = `${RESERVED}scope:`;
const UNDER = `${RESERVED}under:`;
const ESCAPED = `${RESERVED}tag:`;

export const escapeTag = (tag: string): string => (tag.startsWith(RESERVED) ? ESCAPED + tag : tag);

/** The stored tags of a record with these tags and this scope. */
export function toStoredTags(tags: readonly string[], scope: string | null): string[] {
  const storedTags = tags.map(escapeTag);
  if (scope === null) return storedTags;
  for (let slash = scope.indexOf('/'); slash >= 0; slash = scope.indexOf('/', slash + 1)) {
    storedTags.push(UNDER + scope.slice(0, slash));
  }
  storedTags.push(SCOPE + scope);
  return storedTags;
}

/** The tags and the scope of stored tags. */
export function fromStoredTags(storedTags: readonly string[]): { tags: string[]; scope: string | null } {
  const tags: string[] = [];
  let scope: string | null = null;
  for (const tag of storedTags) {
    if (!tag.startsWith(RESERVED)) tags.push(tag);
    else if (tag.startsWith(ESCAPED)) tags.push(tag.slice(ESCAPED.length));
    else if (tag.startsWith(SCOPE)) scope = tag.slice(SCOPE.length);
  }
  return { tags, scope };
}

/**
 * Tags that all records of a scope filter have, where all matching scopes start with `literal`: an ancestor if `literal`
 * contains a whole segment, else none.
 */
export function tagsOfLiteral(literal: string): string[] {
  const slash = literal.lastIndexOf('/');
  return slash > 0 ? [UNDER + literal.slice(0, slash)] : [];
}

export const tagsOfExactScope = (scope: string): string[] => [SCOPE + scope];

/**
 * For a provider without scopes and without tags to emulate them. All its records are unscoped. Requests that use a scope
 * are rejected with `unsupported_capability`; callers with restricted scopes find nothing, unless records without a scope are among
 * them.
 */
export function rejectScopes(inner: Provider): Provider {
  const { name, add, batch, update, delete: remove, list, search, neighbours, users } = inner;
  const { userStats, versions } = inner;
  const rejectScope = (scope: string | null | undefined) => {
    if (scope != null) {
      throw new OmpError('unsupported_capability', 'scope: the provider does not support scopes', { provider: name });
    }
  };
  return withChanges<UnscopedMember | 'export' | 'erase' | 'holdings' | 'import'>(inner, {
    // Imports are checked by it alone.
    check(input, vector) {
      rejectScope(input.scope);
      inner.check?.(input, vector);
    },
    add:
      add &&
      (async (request, call) => {
        rejectScope(request.input.scope);
        return add(request, call);
      }),
    batch:
      batch &&
      (async (request, call) => {
        for (const { input } of request.items) rejectScope(input.scope);
        return batch(request, call);
      }),
    get: async (ref, call) => (isOutside(ref) ? undefined : inner.get(inAnyScope(ref), call)),
    update:
      update &&
      (async (request, call) => {
        rejectScope(request.patch.scope);
        const { ref } = request;
        return isOutside(ref) ? undefined : update({ ...request, ref: inAnyScope(ref) }, call);
      }),
    delete: remove && (async (ref, call) => (isOutside(ref) ? false : remove(inAnyScope(ref), call))),
    list:
      list &&
      (async ({ scope, ...query }, call) => {
        if (scope !== undefined && !withinMatcher([scope].flat())(null)) rejectScope('');
        return isOutside(query) ? [] : list(inAnyScope(query), call);
      }),
    search:
      search &&
      (async ({ scope, ...query }, call) => {
        rejectScope(scope);
        return isOutside(query) ? [] : search(inAnyScope(query), call);
      }),
    neighbours: neighbours && (async (query, call) => (isOutside(query) ? [] : neighbours(inAnyScope(query), call))),
    users:
      users &&
      (async (query, call) => (isOutside(query) ? { items: [], next: undefined } : users(inAnyScope(query), call))),
    userStats: userStats && (async (query, call) => (isOutside(query) ? NO_STATS : userStats(inAnyScope(query), call))),
    versions: versions && {
      list: async ({ ref, ...query }, call) =>
        isOutside(ref) ? undefined : versions.list({ ref: inAnyScope(ref), ...query }, call),
      purge: async (ref, call) => (isOutside(ref) ? undefined : versions.purge(inAnyScope(ref), call)),
      writtenIn: versions.writtenIn,
    },
    // Its entries of failed requests would have scopes.
    audit: undefined,
    changes: undefined,
    changesHeld: undefined,
  });
}

/** Whether records without a scope are outside the allowed scopes. */
const isOutside = ({ within }: Visible): boolean => !withinMatcher(within)(null);
