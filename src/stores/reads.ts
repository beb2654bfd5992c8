import {
  type Call,
  type ExportPart,
  type ExportQuery,
  type LimitKind,
  type ListQuery,
  MAX_DAYS,
  MAX_PERIODS,
  type Memory,
  type NeighboursQuery,
  NO_STATS,
  OmpError,
  type SearchHit,
  type StatsQuery,
  type Times,
  type UserListQuery,
  type UserPart,
  type UserStats,
  type UserSummary,
  type UserUsage,
  type Vector,
} from '#contract';
import { roundScore } from '#ranking';
import { upToBytes } from '#toolbox';
import { malformed, NO_TIME } from '../core/cursor.ts';
import { partsOfScore, type StoreParts } from '../core/explain.ts';
import type { TextQuery } from '../core/store.ts';
import { ask, askAll } from './optional.ts';
import { type Part, type PartWith, partsWith } from './parts.ts';

/*
 * Answers that several stores make together: lists, searches, users, counts, exports (Decision 49).
 */

/** Finds the store of an id. */
export type PartOfId = (id: string) => Part;

/**
 * Merges lists into one, at most `limit` items. `order`: which of two comes first; of equals, that of the earlier list. Keeps the
 * order within each list.
 */
function merge<Item>(lists: readonly (readonly Item[])[], order: (a: Item, b: Item) => number, limit: number): Item[] {
  const merged: Item[] = [];
  const next = lists.map(() => 0);
  while (merged.length < limit) {
    let best = -1;
    for (const [at, list] of lists.entries()) {
      const item = list[next[at] as number];
      const leader = lists[best]?.[next[best] as number];
      if (item !== undefined && (leader === undefined || order(item, leader) < 0)) best = at;
    }
    if (best < 0) break;
    merged.push(lists[best]?.[next[best] as number] as Item);
    (next[best] as number)++;
  }
  return merged;
}

const later = (a: string, b: string): number => (a === b ? 0 : a > b ? -1 : 1);

/** The time that a store's memories have in merged lists: without creation times, that of `NO_TIME`. */
const timeIn = ({ store }: Part, { created_at }: Pick<Memory, 'created_at'>): string =>
  store.capabilities.temporal ? created_at : NO_TIME;

/**
 * By time, then in the order of stores, then by id. A page costs each store at most one page: a cursor is a memory of one store,
 * and of the others come those that are older, or as old in a later store.
 */
export async function listParts(
  parts: readonly Part[],
  partOf: PartOfId,
  query: ListQuery,
  call: Call,
): Promise<Memory[]> {
  const { within, scope, since, until, limit, max_bytes } = query;
  const asked = partsWith(parts, 'list', { within, scopes: scope === undefined ? null : [scope].flat() }, call);
  requireTimes(asked, { since, until }, 'temporal');
  const queryOf = queriesOf(asked, query);
  const lists = await askAll(asked, call, async (part, own) => {
    const page = pageAfter(queryOf(part), part, partOf);
    const memories = page ? await part.store.list(page, own) : [];
    return memories.map((memory) => ({ memory, time: timeIn(part, memory) }));
  });
  const merged = merge(
    lists.map(({ result }) => result),
    (a, b) => later(a.time, b.time),
    limit,
  );
  return upToBytes(
    merged.map(({ memory }) => memory),
    max_bytes,
    (memory) => memory,
  );
}

/** The query for the memories of one store after a position; undefined: there are none. */
function pageAfter({ after, ...query }: ListQuery, part: Part, partOf: PartOfId): ListQuery | undefined {
  if (!after) return query;
  const from = partOf(after.id);
  if (from.index === part.index) return { ...query, after };
  const time = timeIn(from, after);
  const isLater = part.index > from.index;
  if (!part.store.capabilities.temporal) return time > NO_TIME || (time === NO_TIME && isLater) ? query : undefined;
  const latest = isLater ? time : new Date(Date.parse(time) - 1).toISOString();
  // No backend stores times before the year 1.
  if (!/^\d{4}-/.test(latest) || latest.startsWith('0000')) return undefined;
  return { ...query, until: query.until !== undefined && query.until < latest ? query.until : latest };
}

/** A search of several users searches once for each: the text is embedded once for each embedder of a request. */
const queryVectors = new WeakMap<Call, { readonly text: string; readonly byEmbedder: Map<unknown, Promise<Vector>> }>();

function queryVector({ embedder, store }: Part, text: string, call: Call): Promise<Vector> | undefined {
  if (!embedder) return undefined;
  const known = queryVectors.get(call);
  const ofText = known?.text === text ? known : { text, byEmbedder: new Map<unknown, Promise<Vector>>() };
  queryVectors.set(call, ofText);
  const compute = () => store.queryVector?.({ text }, call) ?? Promise.resolve(null);
  // Another store's circuit breaker may be the reason of a failure.
  const vector = ofText.byEmbedder.get(embedder)?.catch(compute) ?? compute();
  ofText.byEmbedder.set(embedder, vector);
  return vector;
}

/** By weighted score, then by time and in the order of stores. The query is embedded once for each embedder. */
export async function searchParts(parts: readonly Part[], query: TextQuery, call: Call): Promise<SearchHit[]> {
  const { text, within, scope, explain, since, until, limit, max_bytes } = query;
  const asked = partsWith(parts, 'search', { within, scopes: scope === undefined ? null : [`${scope}*`] }, call);
  const silent = explain ? asked.find(({ store }) => !store.capabilities.explain) : undefined;
  if (silent) throw unsupportedBy(silent, 'explain: it does not say what its scores are made of');
  requireTimes(asked, { since, until }, 'temporal_search');
  const queryOf = queriesOf(asked, query);
  const lists = await askAll(asked, call, async (part, own) => {
    const vector = await own.unlessAborted(queryVector(part, text, call) ?? Promise.resolve(null));
    const hits = await part.store.search({ ...queryOf(part), vector }, own);
    return hits.map((hit) => ({ hit: weighted(hit, part, explain), time: timeIn(part, hit.memory) }));
  });
  const merged = merge(
    lists.map(({ result }) => result),
    (a, b) => b.hit.score - a.hit.score || later(a.time, b.time),
    limit,
  );
  return upToBytes(
    merged.map(({ hit }) => hit),
    max_bytes,
    ({ memory }) => memory,
  );
}

/** Each store is asked about its own: a conversation has one scope, and so one store. Of a store that cannot tell there are none. */
export async function neighboursInParts(
  parts: readonly Part[],
  partOf: PartOfId,
  query: NeighboursQuery,
  call: Call,
): Promise<Memory[]> {
  const asked = parts.flatMap((part) => {
    const ids = query.ids.filter((id) => partOf(id).index === part.index);
    const { neighbours } = part.store;
    return neighbours && ids.length > 0 ? [{ ...part, neighbours, ids }] : [];
  });
  const queryOf = queriesOf(asked, query);
  const lists = await askAll(asked, call, (part, own) => part.neighbours({ ...queryOf(part), ids: part.ids }, own));
  return upToBytes(
    lists.flatMap(({ result }) => result),
    query.max_bytes,
    (memory) => memory,
  );
}

/** The hit of a mounted store as it competes with those of others. */
function weighted(hit: SearchHit, { mount, name, weight, store }: Part, explain = false): SearchHit {
  if (mount === undefined) return explain ? { ...hit, parts: partsOfScore(hit, store) } : hit;
  const parts: StoreParts | undefined = explain
    ? { ...partsOfScore(hit, store), store: name, store_weight: weight }
    : undefined;
  return { ...hit, score: Math.min(1, roundScore(hit.score * weight)), ...(parts && { parts }) };
}

/**
 * The query for a store: one without origins returns memories of untrusted keys too, which the verb leaves out. Throws
 * `unsupported_capability` if such a store is asked for an origin.
 */
function queriesOf<Query extends Pick<ListQuery, 'written'>>(
  parts: readonly Part[],
  query: Query,
): (part: Part) => Query {
  const { written, ...rest } = query;
  const unable = written && parts.find(({ store }) => !store.capabilities.origins);
  if (unable && written.origin) throw unsupportedBy(unable, 'origin: it cannot filter by who wrote a memory');
  return ({ store }) => (store.capabilities.origins ? query : (rest as Query));
}

/** Throws `unsupported_capability` if a store cannot filter by the times of a query. */
function requireTimes(parts: readonly Part[], times: Times, capability: 'temporal' | 'temporal_search'): void {
  const wanted = (['since', 'until'] as const).find((name) => times[name] !== undefined);
  const unable = wanted && parts.find(({ store }) => !store.capabilities[capability]);
  if (unable) throw unsupportedBy(unable, `${wanted}: features.${capability} is false`);
}

const unsupportedBy = ({ name }: Part, what: string): OmpError =>
  new OmpError('unsupported_capability', `${what} (the store ${name}); a scope that leaves it out helps`, {
    provider: name,
  });

/** Between the name of a store and its own position. */
const BETWEEN = '~';

/** The store where a walk through one store after another is, and its position there. */
function placeOf<Of extends Part>(
  parts: readonly Of[],
  after: string | undefined,
): { at: number; after: string | undefined } {
  if (after === undefined) return { at: 0, after };
  const end = after.indexOf(BETWEEN);
  const at = parts.findIndex(({ mount, name }) => (mount === undefined ? '' : name) === after.slice(0, end));
  if (end < 0 || at < 0) throw malformed();
  return { at, after: after.slice(end + 1) || undefined };
}

/** The next position; undefined: the walk is complete. */
function nextPlace(parts: readonly Part[], at: number, next: string | undefined): string | undefined {
  const part = parts[next === undefined ? at + 1 : at];
  return part && `${part.mount === undefined ? '' : part.name}${BETWEEN}${next ?? ''}`;
}

/** Store after store. A user comes with the first store that has it, and with what all of them have of it. */
export async function listUsers(
  parts: readonly Part[],
  { after, ...query }: UserListQuery,
  call: Call,
): Promise<UserPart> {
  const asked = partsWith(parts, 'users', query, call);
  const items: UserSummary[] = [];
  let { at, after: next } = placeOf(asked, after);
  for (; at < asked.length; at++) {
    const limit = query.limit - items.length;
    const page = await usersFrom(asked, at, { ...query, limit, ...(next !== undefined && { after: next }) }, call);
    items.push(...page.items);
    next = page.next;
    if (next !== undefined || items.length === query.limit) return { items, next: nextPlace(asked, at, next) };
  }
  return { items, next: undefined };
}

/** A page of the users that no store before this one has. */
async function usersFrom(
  asked: readonly PartWith<'users'>[],
  at: number,
  query: UserListQuery,
  call: Call,
): Promise<UserPart> {
  const part = asked[at] as PartWith<'users'>;
  const page = (await ask(part, call, ({ store }, own) => store.users(query, own)))?.result;
  if (!page) return { items: [], next: undefined };
  const users = page.items.map(({ user_id }) => user_id);
  const { after: _, ...rest } = query;
  const others = users.length === 0 ? [] : asked.filter((other) => other !== part);
  const counts = await askAll(others, call, ({ store }, own) =>
    usersNamed(store, { ...rest, users, limit: users.length }, own),
  );
  const byUser = new Map(page.items.map((item) => [item.user_id, item]));
  for (const { part: other, result } of counts) {
    for (const { user_id, count, last_write } of result) {
      const before = byUser.get(user_id);
      if (!before) continue;
      if (other.index < part.index) byUser.delete(user_id);
      else
        byUser.set(user_id, { user_id, count: before.count + count, last_write: max(before.last_write, last_write) });
    }
  }
  return { items: [...byUser.values()], next: page.next };
}

/** All users of a query, however many parts they come in. */
async function usersNamed(
  { users }: PartWith<'users'>['store'],
  query: UserListQuery,
  call: Call,
): Promise<UserSummary[]> {
  const found: UserSummary[] = [];
  for (let after: string | undefined; ; ) {
    const { items, next } = await users({ ...query, ...(after !== undefined && { after }) }, call);
    found.push(...items);
    if (next === undefined) return found;
    after = next;
  }
}

const max = (a: string, b: string): string => (a > b ? a : b);

/** Of tags, each store is asked for more than are shown: one that is frequent in all may be rare in each. */
const MORE = 10;

export async function sumStats(parts: readonly Part[], query: StatsQuery, call: Call): Promise<UserStats> {
  const asked = partsWith(parts, 'userStats', query, call);
  const { limit } = query;
  const all = await askAll(asked, call, ({ store }, own) => store.userStats({ ...query, limit: limit * MORE }, own));
  const stats = all.map(({ result }) => result).filter(({ count }) => count > 0);
  const [oldest, newest, lastWrite] = (['oldest', 'newest', 'last_write'] as const).map((name) =>
    stats.map((one) => one[name] as string).sort(),
  ) as [string[], string[], string[]];
  if (stats.length === 0) return NO_STATS;
  const [first, last] = [oldest[0] as string, newest.at(-1) as string];
  const per = (Date.parse(last) - Date.parse(first)) / 86_400_000 <= MAX_DAYS ? 'day' : 'month';
  const created = stats.flatMap((one) =>
    one.created.counts.map(({ from, count }) => [per === 'day' ? from : `${from.slice(0, 7)}-01`, count] as const),
  );
  const largest = <Value extends string | null>(counts: readonly (readonly [Value, number])[]) =>
    [...summed(counts)].sort(([a, m], [b, n]) => n - m || bytes(a).compare(bytes(b))).slice(0, limit);
  return {
    count: stats.reduce((sum, { count }) => sum + count, 0),
    oldest: first,
    newest: last,
    last_write: lastWrite.at(-1) as string,
    scopes: largest(stats.flatMap(({ scopes }) => scopes.map(({ scope, count }) => [scope, count] as const))).map(
      ([scope, count]) => ({ scope, count }),
    ),
    tags: largest(stats.flatMap(({ tags }) => tags.map(({ tag, count }) => [tag, count] as const))).map(
      ([tag, count]) => ({ tag, count }),
    ),
    created: {
      per,
      counts: [...summed(created)]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .slice(-MAX_PERIODS)
        .map(([from, count]) => ({ from, count })),
    },
  };
}

/** Each store has limits of its own: of each kind, what the user has where it is most. */
export async function fullest(
  parts: readonly Part[],
  request: { readonly user_id: string },
  call: Call,
): Promise<UserUsage> {
  const able = parts.filter((part): part is PartWith<'userUsage'> => part.store.userUsage !== undefined);
  const all = (await askAll(able, call, ({ store }, own) => store.userUsage(request, own))).map(({ result }) => result);
  const most = (kind: LimitKind) => Math.max(0, ...all.map((one) => one[kind]));
  return { memories: most('memories'), bytes: most('bytes'), adds_per_day: most('adds_per_day') };
}

function summed<Value>(counts: readonly (readonly [Value, number])[]): Map<Value, number> {
  const sums = new Map<Value, number>();
  for (const [value, count] of counts) sums.set(value, (sums.get(value) ?? 0) + count);
  return sums;
}

const bytes = (value: string | null): Buffer => Buffer.from(value ?? '');

/** Store after store. An optional store that fails makes it fail too: an export is often a backup. */
export async function exportParts(
  parts: readonly Part[],
  ofId: PartOfId,
  query: ExportQuery,
  call: Call,
): Promise<ExportPart> {
  const asked = partsWith(parts, 'export', { within: null }, call);
  const { at, after } = placeOf(asked, query.after);
  const part = asked[at] as PartWith<'export'>;
  const ids = query.ids?.filter((id) => ofId(id) === part);
  if (ids?.length === 0) return { items: [], next: nextPlace(asked, at, undefined) };
  try {
    const { items, next } = await part.store.export({ ...query, ids, after }, call);
    return { items, next: nextPlace(asked, at, next) };
  } catch (error) {
    const cannot = query.since !== undefined && error instanceof OmpError && error.code === 'unsupported_capability';
    if (!cannot || asked.length === 1) throw error;
    // A mapped store without times.
    call.leaveOut('x-without', part.name);
    return { items: [], next: nextPlace(asked, at, undefined) };
  }
}
