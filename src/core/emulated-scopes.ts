import {
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  type NewMemory,
  OmpError,
  type Position,
  type Provider,
  type Ref,
  type SearchHit,
  type SearchQuery,
  type Within,
  withChanges,
} from '#contract';
import { countWithin, createKeyedMutex, hasWildcard, type KeyedMutex, literalPrefix, withinMatcher } from '#toolbox';

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
  const { capabilities, add, batch, update, delete: remove, list, search, vectorsOf } = inner;
  const { export: exportPart, import: importMemories } = inner;
  // The scope of a record must not change between its check and the write. Scope and tags are patched together.
  const mutex = createKeyedMutex();
  const getAllowed = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const record = await inner.get(inAnyScope(ref), call);
    const memory = record && decode(record);
    return memory && withinMatcher(ref.within)(memory.scope) ? memory : undefined;
  };
  return withChanges<UnscopedMember | 'erase'>(inner, {
    // Its writes check what is stored.
    check: undefined,
    add:
      add && (async (request, call) => decodeIfPresent(await add({ ...request, input: encode(request.input) }, call))),
    batch:
      batch &&
      (async ({ items, key }, call) => {
        const encodedItems = items.map((item) => ({ ...item, input: encode(item.input) }));
        const outcomes = await batch({ items: encodedItems, key }, call);
        return outcomes?.map((outcome) => (outcome instanceof OmpError ? outcome : decode(outcome)));
      }),
    get: getAllowed,
    update: update && updateWith(getAllowed, update, mutex),
    delete:
      remove &&
      (async (ref, call) => {
        if (ref.within === null) return remove(ref, call);
        return mutex(ref.id, async () => {
          call.throwIfAborted();
          return (await getAllowed(ref, call)) !== undefined && remove(inAnyScope(ref), call);
        });
      }),
    list: list && listWith(list, capabilities.max_list_scan),
    search: search && searchWith(search, capabilities.max_search_results),
    // The gateway has read their records within the allowed scopes.
    vectorsOf: vectorsOf && ((query, call) => vectorsOf({ ...query, within: null }, call)),
    // The backend would count stored tags, and over all scopes.
    users: undefined,
    userStats: undefined,
    export:
      exportPart &&
      (async (query, call) => {
        const part = await exportPart(query, call);
        return { ...part, items: part.items.map(({ memory, vector }) => ({ memory: decode(memory), vector })) };
      }),
    import:
      importMemories &&
      (({ items, replace }, call) =>
        importMemories(
          { items: items.map(({ memory, vector }) => ({ memory: encode(memory), vector })), replace },
          call,
        )),
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
  | 'freezing'
  | 'keys'
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
const inAnyScope = <Query extends { readonly within: Within }>(query: Query): Query => ({ ...query, within: null });

/** Scope and tags share one list in the backend, so a patch of one must include the other. */
function updateWith(
  getAllowed: Provider['get'],
  update: NonNullable<Provider['update']>,
  mutex: KeyedMutex,
): Provider['update'] {
  // The memory as read before is decoded, so the provider reads it again.
  return async ({ ref, patch, vector }, call) => {
    const retagged = patch.scope !== undefined || patch.tags !== undefined;
    if (!retagged && ref.within === null) return decodeIfPresent(await update({ ref, patch, vector }, call));
    return mutex(ref.id, async () => {
      call.throwIfAborted();
      const current = await getAllowed(ref, call);
      if (!current) return undefined;
      const { scope = current.scope, tags = current.tags, ...rest } = patch;
      const encodedPatch = retagged ? { ...rest, tags: toStoredTags(tags, scope) } : rest;
      return decodeIfPresent(await update({ ref: inAnyScope(ref), patch: encodedPatch, vector }, call));
    });
  };
}

/** Tags that all records of a glob have. Without a wildcard they decide the match alone. */
const tagsOfGlob = (glob: string): string[] =>
  hasWildcard(glob) ? tagsOfLiteral(literalPrefix(glob)) : tagsOfExactScope(glob);

/** Tags that all records in the allowed scopes have. Several globs have no tag in common. */
const tagsOfWithin = (within: Within): string[] => (within?.length === 1 ? tagsOfGlob(within[0] as string) : []);

function listWith(list: NonNullable<Provider['list']>, max: number | null): Provider['list'] {
  // One record more than the bound tells whether the list continues.
  const reach = max === null ? Number.POSITIVE_INFINITY : max + 1;
  return async ({ scope, within, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    if (scope !== undefined) tags.push(...tagsOfGlob(scope));
    const filtered = within !== null || (scope !== undefined && hasWildcard(scope));
    tags.push(...tagsOfWithin(within));

    const admits = withinMatcher(within);
    const matches = withinMatcher(scope === undefined ? null : [scope]);
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
      if (readCount >= reach) throw invalidRequest(tooManyToFilter(scope));
      after = batch.at(-1);
    }
  };
}

function searchWith(search: NonNullable<Provider['search']>, max: number | null): Provider['search'] {
  const raise = (hit: SearchHit): SearchHit => ({ ...hit, memory: decode(hit.memory) });
  return async ({ scope, within, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    const filtered = scope !== undefined || within !== null;
    tags.push(...(scope === undefined ? [] : tagsOfLiteral(scope)), ...tagsOfWithin(within));
    const admits = withinMatcher(within);
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

const recordOf = ({ memory }: SearchHit): Memory => memory;
/** Whether the records exceed the byte limit: the backend may have left out more. */
const isCut = (records: readonly Memory[], maxBytes: number): boolean =>
  countWithin(records, maxBytes) < records.length;

const tooManyToFilter = (scope: string | undefined): string =>
  scope === undefined
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
 * are rejected with `unsupported_capability`; callers with restricted scopes find nothing.
 */
export function rejectScopes(inner: Provider): Provider {
  const { name, add, batch, update, delete: remove, list, search, vectorsOf } = inner;
  const rejectScope = (scope: string | null | undefined) => {
    if (scope != null) {
      throw new OmpError('unsupported_capability', 'scope: the provider does not support scopes', { provider: name });
    }
  };
  return withChanges<UnscopedMember | 'export'>(inner, {
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
    get: async (ref, call) => (isRestricted(ref.within) ? undefined : inner.get(inAnyScope(ref), call)),
    update:
      update &&
      (async (request, call) => {
        rejectScope(request.patch.scope);
        const { ref } = request;
        return isRestricted(ref.within) ? undefined : update({ ...request, ref: inAnyScope(ref) }, call);
      }),
    delete: remove && (async (ref, call) => (isRestricted(ref.within) ? false : remove(inAnyScope(ref), call))),
    list:
      list &&
      (async ({ scope, ...query }, call) => {
        rejectScope(scope);
        return isRestricted(query.within) ? [] : list(inAnyScope(query), call);
      }),
    search:
      search &&
      (async ({ scope, ...query }, call) => {
        rejectScope(scope);
        return isRestricted(query.within) ? [] : search(inAnyScope(query), call);
      }),
    vectorsOf:
      vectorsOf &&
      (async (query, call) => (isRestricted(query.within) ? new Map() : vectorsOf(inAnyScope(query), call))),
    // No provider without scopes has them.
    users: undefined,
    userStats: undefined,
    erase: undefined,
    import: undefined,
    audit: undefined,
    changes: undefined,
    changesHeld: undefined,
  });
}

/** No glob matches a record without a scope. */
const isRestricted = (within: Within): boolean => within !== null;
