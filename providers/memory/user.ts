import {
  byScore,
  conversationOf,
  isInTime,
  type ListQuery,
  literalPrefix,
  MAX_DAYS,
  MAX_PERIODS,
  type Memory,
  type NeighboursQuery,
  NO_STATS,
  newestFirst,
  type Position,
  queryTerms,
  type RankingOptions,
  roundScore,
  type SearchHit,
  type SearchQuery,
  type StatsQuery,
  type UserStats,
  upToBytes,
  type Vector,
  type Visible,
  visibleMatcher,
  weights,
  withinMatcher,
  writtenMatcher,
} from '#provider';
import { createKeywords, type Visible as VisibleSlots } from './keywords.ts';
import { createUsage, type Usage } from './usage.ts';
import { createVectors } from './vectors.ts';

export interface Entry {
  memory: Memory;
  readonly slot: number;
}

/** The search index of a content. */
interface ContentIndex {
  readonly terms: readonly string[];
  readonly vector: Vector;
}

/** All data of one user. Queries never read the data of another user. */
export interface User {
  add(memory: Memory, content: ContentIndex): Entry;
  /** `indexed` is undefined if the patch has no content. */
  replace(entry: Entry, memory: Memory, content: ContentIndex | undefined): void;
  remove(entry: Entry): void;
  /** The vector of an entry; undefined without an embedder. */
  vector(entry: Entry): Float32Array | undefined;
  list(query: ListQuery): Memory[];
  search(query: SearchQuery): SearchHit[];
  neighbours(anchors: readonly { readonly entry: Entry }[], query: Omit<NeighboursQuery, 'ids'>): Memory[];
  stats(query: Omit<StatsQuery, 'user_id'>): UserStats;
  readonly usage: Usage;
}

export function createUser(dimensions: number | undefined, ranking: RankingOptions): User {
  /** Oldest first: a new record nearly always goes to the end. */
  const entries: Entry[] = [];
  /** The entries of each conversation, oldest first. */
  const conversations = new Map<string, Entry[]>();
  const keywords = createKeywords();
  const vectors = dimensions === undefined ? undefined : createVectors(dimensions);
  const usage = createUsage(entries);
  const free: number[] = [];
  let slots = 0;

  const index = ({ slot }: Entry, { terms, vector }: ContentIndex) => {
    keywords.set(slot, terms);
    if (vector) vectors?.set(slot, vector);
  };

  const join = (entry: Entry) => {
    const name = conversationOf(entry.memory);
    if (name === undefined) return;
    const others = conversations.get(name);
    if (others) others.splice(rank(others, entry.memory), 0, entry);
    else conversations.set(name, [entry]);
  };
  const leave = ({ memory }: Entry) => {
    const name = conversationOf(memory) ?? '';
    const all = conversations.get(name);
    all?.splice(rank(all, memory), 1);
    if (all?.length === 0) conversations.delete(name);
  };

  return {
    add(memory, content) {
      const entry: Entry = { memory, slot: free.pop() ?? slots++ };
      entries.splice(rank(entries, memory), 0, entry);
      join(entry);
      index(entry, content);
      usage.count(memory, 1);
      return entry;
    },
    replace(entry, memory, content) {
      const rewritten = memory.content !== entry.memory.content;
      const moves = memory.scope !== entry.memory.scope;
      if (moves) leave(entry);
      usage.count(entry.memory, -1);
      usage.count(memory, 1);
      entry.memory = memory;
      if (moves) join(entry);
      if (content && rewritten) index(entry, content);
    },
    remove(entry) {
      keywords.delete(entry.slot);
      leave(entry);
      usage.count(entry.memory, -1);
      entries.splice(rank(entries, entry.memory), 1);
      free.push(entry.slot);
    },
    vector: ({ slot }) => vectors?.get(slot),
    list(query) {
      const admits = filter(query);
      const page: Memory[] = [];
      const start = query.after ? rank(entries, query.after) : entries.length;
      for (let i = start - 1; i >= 0 && page.length < query.limit; i--) {
        const { memory } = entries[i] as Entry;
        if (query.since !== undefined && memory.created_at < query.since) break;
        if (isInTime(memory, query) && admits(memory)) page.push(memory);
      }
      return upToBytes(page, query.max_bytes, (memory) => memory);
    },
    search(query) {
      const { vector } = query;
      const terms = queryTerms(query.text);
      const weight = weights(ranking, terms.length);
      const cosines = vector && vectors?.cosines(vector, slots);
      const visible = query.within === null && !query.outside ? entries : inside(entries, query);
      const coverages = keywords.coverages(terms, slots, visible === entries ? undefined : slotsOf(visible, slots));
      const isWanted = writtenMatcher(query.written);
      const hits: SearchHit[] = [];
      for (const { memory, slot } of visible) {
        const cosine = Math.max(0, cosines?.[slot] ?? 0);
        const coverage = coverages[slot] as number;
        const score = Math.min(1, roundScore(weight.vector * cosine + weight.keyword * coverage));
        // Without vectors, a memory that shares no term with the query is no hit.
        if (score === 0 && ranking.mode === 'keyword') continue;
        if (!inScope(memory, query.scope) || !hasTags(memory, query.tags) || !isInTime(memory, query)) continue;
        if (isShort(memory, query) && isWanted(memory))
          hits.push({ memory, score, ...(query.explain && { parts: { cosine, coverage, weights: weight } }) });
      }
      return upToBytes(hits.sort(byScore).slice(0, query.limit), query.max_bytes, ({ memory }) => memory);
    },
    neighbours(anchors, query) {
      const isWanted = writtenMatcher(query.written);
      const near = new Set<Memory>();
      for (const { entry } of anchors) {
        const all = conversations.get(conversationOf(entry.memory) ?? '') ?? [];
        const place = rank(all, entry.memory);
        for (const other of [all[place - 1], all[place + 1]]) if (other) near.add(other.memory);
      }
      for (const { entry } of anchors) near.delete(entry.memory);
      const page = [...near].filter((memory) => isShort(memory, query) && isWanted(memory)).sort(newestFirst);
      return upToBytes(page, query.max_bytes, (memory) => memory);
    },
    stats({ limit, ...visible }) {
      const memories = inside(entries, visible).map(({ memory }) => memory);
      const [oldest, newest] = [memories[0], memories.at(-1)];
      if (!oldest || !newest) return NO_STATS;
      const last_write = memories.reduce((latest, { updated_at }) => (updated_at > latest ? updated_at : latest), '');
      return {
        count: memories.length,
        oldest: oldest.created_at,
        newest: newest.created_at,
        last_write,
        scopes: largest(
          memories.map(({ scope }) => scope),
          limit,
        ).map(([scope, count]) => ({ scope, count })),
        tags: largest(
          memories.flatMap(({ tags }) => tags),
          limit,
        ).map(([tag, count]) => ({ tag, count })),
        created: periods(memories),
      };
    },
    usage,
  };
}

/** The most frequent values with their counts, in the order of `UserStats`. */
function largest<Value extends string | null>(values: readonly Value[], limit: number): [Value, number][] {
  const counts = new Map<Value, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const bytes = (value: string | null) => Buffer.from(value ?? '');
  return [...counts].sort(([a, m], [b, n]) => n - m || bytes(a).compare(bytes(b))).slice(0, limit);
}

/** `UserStats.created`; oldest first. */
function periods(memories: readonly Memory[]): UserStats['created'] {
  const times = memories.map(({ created_at }) => created_at);
  const days = (Date.parse(times.at(-1) ?? '') - Date.parse(times[0] ?? '')) / 86_400_000;
  const per = days <= MAX_DAYS ? 'day' : 'month';
  const counts = new Map<string, number>();
  for (const time of times) {
    const from = per === 'day' ? time.slice(0, 10) : `${time.slice(0, 7)}-01`;
    counts.set(from, (counts.get(from) ?? 0) + 1);
  }
  return { per, counts: [...counts].slice(-MAX_PERIODS).map(([from, count]) => ({ from, count })) };
}

function inside(entries: readonly Entry[], visible: Visible): readonly Entry[] {
  const admits = visibleMatcher(visible);
  return entries.filter(({ memory }) => admits(memory.scope));
}

function slotsOf(entries: readonly Entry[], slots: number): VisibleSlots {
  const mask = new Uint8Array(slots);
  for (const { slot } of entries) mask[slot] = 1;
  return { mask, count: entries.length };
}

/** The number of entries before this position in order of time. */
function rank(entries: readonly Entry[], position: Position): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore((entries[middle] as Entry).memory, position)) low = middle + 1;
    else high = middle;
  }
  return low;
}

const isBefore = (a: Position, b: Position): boolean =>
  a.created_at < b.created_at || (a.created_at === b.created_at && a.id < b.id);

const inScope = ({ scope }: Memory, prefix: string | undefined): boolean =>
  prefix === undefined || (scope?.startsWith(prefix) ?? false);

const isShort = ({ content }: Memory, { max_content_bytes: most }: Pick<SearchQuery, 'max_content_bytes'>): boolean =>
  most === undefined || Buffer.byteLength(content) <= most;

const hasTags = ({ tags }: Memory, queryTags: readonly string[]): boolean =>
  queryTags.every((tag) => tags.includes(tag));

function filter({ scope, tags, written, ...visible }: ListQuery): (memory: Memory) => boolean {
  const admits = visibleMatcher(visible);
  const isWanted = writtenMatcher(written);
  const fits = (memory: Memory) => hasTags(memory, tags) && admits(memory.scope) && isWanted(memory);
  if (scope === undefined) return fits;
  const prefix = typeof scope === 'string' ? literalPrefix(scope) : undefined;
  const matches = withinMatcher([scope].flat());
  return (memory) => inScope(memory, prefix) && matches(memory.scope) && fits(memory);
}
