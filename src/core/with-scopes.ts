import {
  globMatcher,
  hasWildcard,
  type ListQuery,
  literalPrefix,
  type Memory,
  OmpError,
  type Position,
  type Provider,
  type SearchHit,
  type SearchQuery,
} from '#contract';
import { escapeTag, fromStoredTags, tagsOfExactScope, tagsOfLiteral, toStoredTags } from './scope-tags.ts';

/** Every verb spelled out: a new one stops the build here until its scoping is decided. */
type EveryVerb = { [Verb in keyof Required<Provider>]: Provider[Verb] };

const LIST_BATCH = 500;
/** A search that must be refined starts by asking for this many times its limit. */
const OVERFETCH = 4;

/**
 * Gives hierarchical scopes to a provider that has none, exactly: the same answers as a native one, partial segments
 * and globs included. The backend filters by ancestor tags as far as they reach; the rest is refined here, fetching
 * on until the page is full or the user's records are exhausted.
 */
export function withScopes(inner: Provider): Provider {
  if (inner.capabilities.scopes !== 'none') return inner;
  const scoped: EveryVerb = {
    name: inner.name,
    capabilities: inner.capabilities,
    add: async (input, call) =>
      up(await inner.add({ ...input, scope: null, tags: toStoredTags(input.tags, input.scope) }, call)),
    get: async (ref, call) => optional(await inner.get(ref, call)),
    update: inner.update && updateWith(inner, inner.update),
    delete: inner.delete,
    list: inner.list && listWith(inner.list),
    search: inner.search && searchWith(inner.search, inner.capabilities.max_search_results),
    ping: inner.ping,
    close: inner.close,
  };
  return scoped;
}

const up = (memory: Memory): Memory => ({ ...memory, ...fromStoredTags(memory.tags) });
const optional = (memory: Memory | undefined): Memory | undefined => memory && up(memory);

/**
 * Scope and tags share one list in the backend, so a patch of one alone has to carry the other along. Patches of one
 * record are taken one after the other, or a concurrent pair could each restore what the other replaced.
 */
function updateWith(inner: Provider, update: NonNullable<Provider['update']>): Provider['update'] {
  const queues = new Map<string, Promise<unknown>>();
  return async (ref, patch, call) => {
    if (patch.scope === undefined && patch.tags === undefined) return optional(await update(ref, patch, call));
    const turn = (queues.get(ref.id) ?? Promise.resolve()).then(async () => {
      call.signal.throwIfAborted();
      const current = optional(await inner.get(ref, call));
      if (!current) return undefined;
      const { scope = current.scope, tags = current.tags, ...rest } = patch;
      return optional(await update(ref, { ...rest, tags: toStoredTags(tags, scope) }, call));
    });
    const settled = turn.catch(() => {});
    queues.set(ref.id, settled);
    try {
      return await turn;
    } finally {
      if (queues.get(ref.id) === settled) queues.delete(ref.id);
    }
  };
}

function listWith(list: NonNullable<Provider['list']>): Provider['list'] {
  return async ({ scope, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    if (scope === undefined) return (await list({ ...query, tags }, call)).map(up);
    if (!hasWildcard(scope))
      return (await list({ ...query, tags: [...tags, ...tagsOfExactScope(scope)] }, call)).map(up);

    const matches = globMatcher(scope);
    const down: ListQuery = { ...query, tags: [...tags, ...tagsOfLiteral(literalPrefix(scope))] };
    const found: Memory[] = [];
    let after: Position | undefined = query.after;
    while (found.length < query.limit) {
      call.signal.throwIfAborted();
      const batch: Memory[] = await list({ ...down, limit: LIST_BATCH, ...(after && { after }) }, call);
      for (const memory of batch.map(up)) if (memory.scope !== null && matches(memory.scope)) found.push(memory);
      if (batch.length < LIST_BATCH) break;
      after = batch.at(-1);
    }
    return found.slice(0, query.limit);
  };
}

function searchWith(search: NonNullable<Provider['search']>, most: number | null): Provider['search'] {
  const raise = (hit: SearchHit): SearchHit => ({ ...hit, memory: up(hit.memory) });
  return async ({ scope, ...query }, call) => {
    const tags = query.tags.map(escapeTag);
    if (scope === undefined) return (await search({ ...query, tags }, call)).map(raise);

    const down: SearchQuery = { ...query, tags: [...tags, ...tagsOfLiteral(scope)] };
    for (let window = query.limit * OVERFETCH; ; window *= OVERFETCH) {
      call.signal.throwIfAborted();
      const limit = Math.min(window, most ?? window);
      const hits = (await search({ ...down, limit }, call)).map(raise);
      const found = hits.filter(({ memory }) => memory.scope?.startsWith(scope));
      if (found.length >= query.limit || hits.length < limit) return found.slice(0, query.limit);
      // Short of the page and no way to see further: saying nothing would be a silently partial answer.
      if (limit === most)
        throw new OmpError(
          'invalid_request',
          `scope: too many memories rank before those under this prefix; end it at a whole segment ("${scope.split('/')[0]}/") or lower limit`,
        );
    }
  };
}
