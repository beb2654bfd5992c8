import {
  type Call,
  invalidRequest,
  type ListQuery,
  type Memory,
  type NewMemory,
  type Position,
  type Provider,
  type Ref,
  type SearchHit,
  type SearchQuery,
  type Within,
} from '#contract';
import { countWithin, createKeyedMutex, hasWildcard, type KeyedMutex, literalPrefix, withinMatcher } from '#toolbox';
import { escapeTag, fromStoredTags, tagsOfExactScope, tagsOfLiteral, toStoredTags } from './scope-tags.ts';

/** Every verb spelled out: a new one stops the build here until its scoping is decided. */
type EveryVerb = { [Verb in keyof Required<Provider>]: Provider[Verb] };

/** What must be refined here is first asked for this many times over, and each time more by the same factor. */
const OVERFETCH = 4;
const LARGEST_BATCH = 500;
/** Of what one search reads to refine it. */
const MOST_SEARCHED_BYTES = 64 * 1024 * 1024;

/**
 * Gives hierarchical scopes to a provider that has none, exactly: the same answers as a native one, partial segments
 * and globs included. The backend filters by ancestor tags as far as they reach; the rest is refined here, fetching
 * on until the page is full or the user's records are exhausted.
 */
export function withScopes(inner: Provider): Provider {
  const { capabilities, add, idempotency, update, delete: remove, list, search } = inner;
  // Where the scope decides, it must not change between the look and the deed; scope and tags are patched together.
  const mutex = createKeyedMutex();
  const reachable = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const found = await inner.get(anywhere(ref), call);
    const memory = found && up(found);
    return memory && withinMatcher(ref.within)(memory.scope) ? memory : undefined;
  };
  const scoped: EveryVerb = {
    name: inner.name,
    capabilities,
    read_only: inner.read_only,
    add: add && (async (input, vector, call) => up(await add(lower(input), vector, call))),
    idempotency: idempotency && {
      firstAnswer: async (input, key, call) => raised(await idempotency.firstAnswer(lower(input), key, call)),
      add: async (input, vector, key, call) => raised(await idempotency.add(lower(input), vector, key, call)),
    },
    get: reachable,
    update: update && updateWith(reachable, update, mutex),
    delete:
      remove &&
      (async (ref, call) => {
        if (ref.within === null) return remove(ref, call);
        return mutex(ref.id, async () => {
          call.signal.throwIfAborted();
          return (await reachable(ref, call)) !== undefined && remove(anywhere(ref), call);
        });
      }),
    list: list && listWith(list, capabilities.max_list_scan),
    search: search && searchWith(search, capabilities.max_search_results),
    // Its entries would lack the scopes that it does not know.
    audit: undefined,
    keys: inner.keys,
    stats: inner.stats,
    ingestion: inner.ingestion,
    backlog: inner.backlog,
    ping: inner.ping,
    close: inner.close,
  };
  return scoped;
}

const up = (memory: Memory): Memory => ({ ...memory, ...fromStoredTags(memory.tags) });
const raised = (memory: Memory | undefined): Memory | undefined => memory && up(memory);
const lower = (input: NewMemory): NewMemory => ({
  ...input,
  scope: null,
  tags: toStoredTags(input.tags, input.scope),
});
const anywhere = (ref: Ref): Ref => ({ ...ref, within: null });

/** Scope and tags share one list in the backend, so a patch of one alone has to carry the other along. */
function updateWith(
  reachable: Provider['get'],
  update: NonNullable<Provider['update']>,
  mutex: KeyedMutex,
): Provider['update'] {
  return async (ref, patch, vector, call) => {
    const retagged = patch.scope !== undefined || patch.tags !== undefined;
    if (!retagged && ref.within === null) {
      return raised(await update(ref, patch, vector, call));
    }
    return mutex(ref.id, async () => {
      call.signal.throwIfAborted();
      const current = await reachable(ref, call);
      if (!current) return undefined;
      const { scope = current.scope, tags = current.tags, ...rest } = patch;
      const stored = retagged ? { ...rest, tags: toStoredTags(tags, scope) } : rest;
      return raised(await update(anywhere(ref), stored, vector, call));
    });
  };
}

/** What the backend can decide of a glob by tags; for one without a wildcard that is everything. */
const tagsOfGlob = (glob: string): string[] =>
  hasWildcard(glob) ? tagsOfLiteral(literalPrefix(glob)) : tagsOfExactScope(glob);

/** The same for a query bound to some scopes: only a single glob says anything for all. */
const tagsOfWithin = (within: Within): string[] => (within?.length === 1 ? tagsOfGlob(within[0] as string) : []);

function listWith(list: NonNullable<Provider['list']>, most: number | null): Provider['list'] {
  // One record further tells a list that ends at the bound from one that goes on.
  const reach = most === null ? Number.POSITIVE_INFINITY : most + 1;
  return async ({ scope, within, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    if (scope !== undefined) tags.push(...tagsOfGlob(scope));
    const refined = within !== null || (scope !== undefined && hasWildcard(scope));
    tags.push(...tagsOfWithin(within));

    const admits = withinMatcher(within);
    const matches = withinMatcher(scope === undefined ? null : [scope]);
    const found: Memory[] = [];
    let after: Position | undefined = query.after;
    let read = 0;
    for (let size = query.limit; ; ) {
      call.signal.throwIfAborted();
      if (refined) size = Math.min(size * OVERFETCH, LARGEST_BATCH, reach - read);
      const down: ListQuery = { ...query, tags, within: null, limit: size, ...(after && { after }) };
      const batch: Memory[] = await list(down, call);
      for (const memory of batch.map(up)) if (matches(memory.scope) && admits(memory.scope)) found.push(memory);
      const isFull = found.length >= query.limit || isCut(found, query.max_bytes);
      if (isFull || (batch.length < size && !isCut(batch, query.max_bytes))) return found.slice(0, query.limit);
      read += batch.length;
      // Short of the page and not allowed to read on: less than the page would be a silently partial answer.
      if (read >= reach) throw invalidRequest(tooManyToRefine(scope));
      after = batch.at(-1);
    }
  };
}

function searchWith(search: NonNullable<Provider['search']>, most: number | null): Provider['search'] {
  const raise = (hit: SearchHit): SearchHit => ({ ...hit, memory: up(hit.memory) });
  return async ({ scope, within, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    const refined = scope !== undefined || within !== null;
    tags.push(...(scope === undefined ? [] : tagsOfLiteral(scope)), ...tagsOfWithin(within));
    const admits = withinMatcher(within);
    let window = refined ? query.limit * OVERFETCH : query.limit;
    for (let max_bytes = query.max_bytes; ; ) {
      call.signal.throwIfAborted();
      const limit = Math.min(window, most ?? window);
      const down: SearchQuery = { ...query, tags, within: null, limit, max_bytes };
      const hits = await search(down, call);
      const found = hits
        .map(raise)
        .filter(({ memory }) => (scope === undefined || memory.scope?.startsWith(scope)) && admits(memory.scope));
      if (found.length >= query.limit || isCut(found.map(recordOf), query.max_bytes))
        return found.slice(0, query.limit);
      const cut = isCut(hits.map(recordOf), max_bytes);
      if (!cut && hits.length < limit) return found;
      // Short of the page and no way to see further: saying nothing would be a silently partial answer.
      if (cut ? max_bytes === MOST_SEARCHED_BYTES : limit === most) throw invalidRequest(tooFar(scope));
      if (cut) max_bytes = Math.min(max_bytes * OVERFETCH, MOST_SEARCHED_BYTES);
      else window *= OVERFETCH;
    }
  };
}

const recordOf = ({ memory }: SearchHit): Memory => memory;
/** Whether these are more than the bytes allow: there may be others that the backend has left out. */
const isCut = (records: readonly Memory[], maxBytes: number): boolean =>
  countWithin(records, maxBytes) < records.length;

const tooManyToRefine = (scope: string | undefined): string =>
  scope === undefined
    ? 'too many memories lie between those this key may read; give a scope, or narrow the list by since and until'
    : 'scope: too many memories have to be read to find those it matches; let it begin with whole segments ("coding/*"), or narrow the list by since and until';

const tooFar = (scope: string | undefined): string =>
  scope === undefined
    ? 'too many memories rank before those this key may read; give a scope or lower limit'
    : `scope: too many memories rank before those under this prefix; end it at a whole segment ("${scope.split('/')[0]}/") or lower limit`;
