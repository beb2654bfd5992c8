import {
  type AuditEntry,
  type AuditQuery,
  type Call,
  type IdempotencyKey,
  type KeptEntry,
  type ListQuery,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OmpError,
  providerError,
  type Ref,
  type SearchHit,
  type Within,
} from '#contract';
import { countWithin, withinMatcher } from '#toolbox';
import type { AuditTrail, Facts } from './audit-trail.ts';
import { type ContextBlock, type ContextOptions, MIN_SIMILARITY, toContext } from './context.ts';
import type { Memories, TextQuery } from './memories.ts';
import type { Principal } from './principal.ts';
import { globsOverlap } from './scope-overlap.ts';

/** A record as a caller names it. With `user_id`, a record of another user counts as absent. */
export interface Target {
  readonly id: string;
  readonly user_id?: string;
}

/** A query as a caller asks it: how far the caller may see, and how much is sent at once, is not the caller's to say. */
export type Asked<Query> = Omit<Query, 'within' | 'max_bytes' | 'max_content_bytes'>;

/** The first of what was asked for. */
export interface Part<Item> {
  readonly items: Item[];
  /** Whether there are others: beyond the limit of a list, or beyond the bytes of an answer. */
  readonly more: boolean;
}

/**
 * The verbs of the protocol for one caller, and the only way from HTTP to a provider. Every one of them is bound to
 * what the caller may see and do (Decision 14). Absent verbs are not supported by the provider.
 */
export interface Verbs {
  /** `Provider.read_only`. */
  readonly read_only?: string;
  /** With `once`, at most once. */
  add?(input: NewMemory, once: Omit<IdempotencyKey, 'caller'> | undefined, call: Call): Promise<Memory>;
  /**
   * This and the two below throw `not_found` for an id that names nothing or a record of a user out of reach, and
   * `scope_denied` for one outside of the grant.
   */
  get(target: Target, call: Call): Promise<Memory>;
  update?(target: Target, patch: MemoryPatch, call: Call): Promise<Memory>;
  delete?(target: Target, call: Call): Promise<void>;
  list?(query: Asked<ListQuery>, call: Call): Promise<Part<Memory>>;
  /** `more`: hits within the limit are left out, since they would make the answer too large. */
  search?(query: Asked<TextQuery>, call: Call): Promise<Part<SearchHit>>;
  context?(query: Omit<Asked<TextQuery>, 'limit'>, options: ContextOptions, call: Call): Promise<ContextBlock>;
  audit?(query: Asked<AuditQuery>, call: Call): Promise<KeptEntry[]>;
}

/** A record, or an entry about one. */
type Owned = Pick<AuditEntry, 'user_id' | 'scope'>;

/** Of the records in one answer (`recordBytes`); a single one may be larger. */
export const MOST_ANSWER_BYTES = 4 * 1024 * 1024;

/** What is longer than this for each token of a budget does not fit into it, and is no candidate. */
const BYTES_PER_TOKEN = 32;
/** As many candidates as the widest search shows; more would not change what fits an ordinary budget. */
const CONTEXT_CANDIDATES = 100;

/**
 * What a caller may do, in one place for all providers. The rule travels inside every query and is checked again on
 * every record that comes back. Whatever a caller reads is answered as if the store held nothing but what it may see.
 */
export function verbsFor(principal: Principal, provider: Memories, trail: AuditTrail): Verbs {
  const { users, grants } = principal;
  const { add, addOnce, update, delete: remove, list, search } = provider;
  const { audited, read } = trail;
  const mayTouch = (user: string) => users === null || users.includes(user);

  /** A user out of reach is only claimed. */
  const about = ({ user_id, scope = null }: { user_id: string; scope?: string | null | undefined }): Facts => ({
    user_id: mayTouch(user_id) ? user_id : null,
    memory_id: null,
    scope,
  });
  const refTo = ({ id, user_id }: Target, within: Within): Ref => {
    if (user_id === undefined) return { id, users, within };
    return { id, users: mayTouch(user_id) ? [user_id] : [], within };
  };
  /** A provider that answers with more than it was asked for is at fault; its answer is not passed on. */
  const checkedBy = (within: Within) => {
    const admits = withinMatcher(within);
    return <Row extends Owned>(row: Row, asked = row.user_id): Row => {
      const { user_id, scope } = row;
      if (user_id !== null && user_id === asked && mayTouch(user_id) && admits(scope)) return row;
      throw providerError(provider.name, 'the backend answered with more than it was asked for');
    };
  };
  const readable = checkedBy(grants.read);
  const writable = checkedBy(grants.write);
  const admitsWrite = withinMatcher(grants.write);

  /**
   * Why a record could not be touched: 403 when it is there for this caller but outside the grant, else 404. Unknown
   * ids and those of users out of reach take the same lookups: neither the answer nor its time tells them apart.
   */
  const refusal = async (target: Target, call: Call, facts: Facts): Promise<OmpError> => {
    const found = await provider.get(refTo(target, null), call);
    if (!found || !mayTouch(found.user_id)) return notFound();
    learn(facts, found);
    return denied();
  };
  const absent = async (within: Within, target: Target, call: Call, facts: Facts): Promise<OmpError> =>
    within === null ? notFound() : refusal(target, call, facts);
  /** A user out of reach, or a query that can only ask for scopes that are. */
  const requireReach = (user: string, within: Within, glob?: string) => {
    if (!mayTouch(user)) throw denied();
    if (within !== null && !within.some((granted) => globsOverlap(granted, glob ?? '*'))) throw denied();
  };
  const bounds = { within: grants.read, max_bytes: MOST_ANSWER_BYTES };
  const searchWithin = async (query: Omit<TextQuery, keyof typeof bounds>, call: Call): Promise<Part<SearchHit>> => {
    requireReach(query.user_id, grants.read, query.scope === undefined ? undefined : `${query.scope}*`);
    const hits = await (search as NonNullable<typeof search>)({ ...query, ...bounds }, call);
    const records = hits.map(({ memory }) => readable(memory, query.user_id));
    return partOf(hits, countWithin(records, MOST_ANSWER_BYTES));
  };

  return {
    ...(provider.read_only !== undefined && { read_only: provider.read_only }),
    ...(add && {
      add: (input, once, call) =>
        audited('add', about(input), call, async () => {
          if (!mayTouch(input.user_id) || !admitsWrite(input.scope)) throw denied();
          if (!once) return writable(await add(input, call), input.user_id);
          if (!addOnce) throw onceUnsupported(provider.name);
          return writable(await addOnce(input, { ...once, caller: principal.id }, call), input.user_id);
        }),
    }),
    get: (target, call) =>
      audited('get', named(target), call, async (facts) => {
        const found = await provider.get(refTo(target, grants.read), call);
        if (!found) throw await absent(grants.read, target, call, facts);
        return learn(facts, readable(found, target.user_id));
      }),
    ...(update && {
      update: (target, patch, call) =>
        audited('update', named(target), call, async (facts) => {
          if (patch.scope !== undefined && !admitsWrite(patch.scope)) throw await refusal(target, call, facts);
          const updated = await update(refTo(target, grants.write), patch, call);
          if (!updated) throw await absent(grants.write, target, call, facts);
          return writable(updated, target.user_id);
        }),
    }),
    ...(remove && {
      delete: (target, call) =>
        audited('delete', named(target), call, async (facts) => {
          if (!(await remove(refTo(target, grants.delete), call))) {
            throw await absent(grants.delete, target, call, facts);
          }
        }),
    }),
    ...(list && {
      list: (query, call) =>
        audited('list', about(query), call, async () => {
          requireReach(query.user_id, grants.read, query.scope);
          // One more than asked for tells whether there are more.
          const found = await list({ ...query, limit: query.limit + 1, ...bounds }, call);
          for (const memory of found) readable(memory, query.user_id);
          return partOf(found, Math.min(query.limit, countWithin(found, MOST_ANSWER_BYTES)));
        }),
    }),
    ...(search && {
      search: (query, call) => audited('search', about(query), call, () => searchWithin(query, call)),
      context: (query, options, call) =>
        audited('context', about(query), call, async () => {
          const limit = Math.min(CONTEXT_CANDIDATES, provider.capabilities.max_search_results ?? CONTEXT_CANDIDATES);
          const { budget, min_score = provider.capabilities.vector_search ? MIN_SIMILARITY : 0 } = options;
          const max_content_bytes = budget * BYTES_PER_TOKEN;
          const { items } = await searchWithin({ ...query, limit, max_content_bytes }, call);
          return toContext(items, { budget, min_score }, new Date(), call);
        }),
    }),
    ...(read && {
      audit: (query, call) =>
        audited('audit', about(query), call, async () => {
          requireReach(query.user_id, grants.read);
          const entries = await read({ ...query, within: grants.read }, call);
          for (const entry of entries) readable(entry, query.user_id);
          return entries;
        }),
    }),
  };
}

/** The owner is entered only once the record is known (`learn`): what a caller claims does not go into a user's log. */
const named = ({ id }: Target): Facts => ({ user_id: null, memory_id: id, scope: null });
function learn(facts: Facts, memory: Memory): Memory {
  facts.user_id = memory.user_id;
  facts.scope = memory.scope;
  return memory;
}

const partOf = <Item>(found: readonly Item[], count: number): Part<Item> => ({
  items: found.slice(0, count),
  more: found.length > count,
});

const onceUnsupported = (provider: string) =>
  new OmpError('unsupported_capability', 'the provider does not support Idempotency-Key', { provider });
const notFound = () => new OmpError('not_found', 'no memory has this id');
const denied = () => new OmpError('scope_denied', 'the key lacks the permission for this user or scope');
