import {
  type Call,
  countWithin,
  invalidRequest,
  type Memory,
  type Provider,
  type SearchHit,
  type SearchQuery,
  toUnit,
  upToBytes,
} from '#provider';
import { type Lsn, MAX_TOP_K, type Match, type Metadata } from '../client/client.ts';
import { userFilter } from '../filter.ts';
import { createScoring, isZero, type Scoring } from '../score.ts';
import { type GatewayIndex, isEmbedded, toMemory } from './gateway-record.ts';
import { listOrder, parseId } from './ids.ts';

/** Pinecone rejects answers of more than 4 MB: a query asks for metadata only if they fit in any case. */
const MAX_ANSWER_BYTES = 4_000_000;
const MAX_MATCH_BYTES = 40_960 + 240;
const MAX_WITH_METADATA = Math.floor(MAX_ANSWER_BYTES / MAX_MATCH_BYTES);

/** After too few matches, the next query asks for this many times as many. */
const GROWTH = 4;

/** The floor of a query that found everything: every score is above it. */
const BELOW_ALL = -1;

/**
 * Ranks all memories of the user that have the tags: by cosine, and those at 0 or less newest first. Takes one request for
 * at most 96 results or memories; for more, a second query for ids and fetches of records; still more if many of the best
 * were just changed or have the same score. More than 10,000 equal scores stay in the order of the index.
 */
export function createIndexSearch(index: GatewayIndex, list: NonNullable<Provider['list']>) {
  const newest = async (query: SearchQuery, call: Call): Promise<SearchHit[]> => {
    const { user_id, tags, limit, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
    const memories = await list({ user_id, tags, limit, max_bytes, within: null }, call);
    const short = memories.filter(({ content }) => Buffer.byteLength(content) <= max_content_bytes);
    return short.map((memory) => ({ memory, score: 0 }));
  };

  return async (query: SearchQuery, call: Call): Promise<SearchHit[]> => {
    const { user_id, tags, limit, max_bytes } = query;
    const vector = toUnit(query.vector);
    if (isZero(vector)) return newest(query, call);
    const namespace = index.namespaces.of(index.ids.userPart(user_id));
    await index.consistency.caughtUp(namespace, call);
    const scoring = createScoring(index.metric, vector);
    const candidates = createCandidates(index, scoring, query, call);
    const { live, deleted } = index.overlay.of(user_id);
    // One more than wanted shows where the page ends; recent writes may remove others.
    const ample = limit + 1 + live.length + deleted.size;

    for (let topK = Math.min(ample, MAX_WITH_METADATA); ; topK = Math.min(Math.max(topK * GROWTH, ample), MAX_TOP_K)) {
      const includeMetadata = topK <= MAX_WITH_METADATA;
      const request = { vector, topK, filter: userFilter(user_id, tags), includeMetadata };
      const { matches, indexedLsn } = await index.service.query(namespace, request, call);
      index.consistency.saw(namespace, indexedLsn);
      candidates.add(matches, includeMetadata ? indexedLsn : undefined);

      // Everything that was not found has at most this score: only higher scores are in their final place.
      const floor = matches.length < topK ? BELOW_ALL : scoring.ofMatch(matches.at(-1)?.score ?? 0);
      const hits = await candidates.best(floor, limit);
      if (isFull(hits, query) || floor === BELOW_ALL) return hits;
      // All others have score 0. A list filters tags only after reading, so a larger query is cheaper while there is one.
      if (floor === 0 && (tags.length === 0 || topK === MAX_TOP_K)) {
        const ranked = new Set(hits.map(({ memory }) => memory.id));
        const rest = (await newest(query, call)).filter(({ memory }) => !ranked.has(memory.id));
        return upToBytes([...hits, ...rest].slice(0, limit), max_bytes, ({ memory }) => memory);
      }
      if (topK === MAX_TOP_K) {
        // A larger query is impossible. Equal scores at the end are as good as those that were not found.
        const all = await candidates.best(floor - Number.EPSILON, limit);
        if (isFull(all, query)) return all;
        throw invalidRequest(
          'too many memories that were just changed or deleted rank before the rest; lower limit, or try again later',
        );
      }
    }
  };
}

/** Whether the page has no room for more. */
const isFull = (hits: readonly SearchHit[], { limit, max_bytes }: SearchQuery): boolean =>
  hits.length === limit ||
  countWithin(
    hits.map(({ memory }) => memory),
    max_bytes,
  ) < hits.length;

/** The results of one search so far, from the index and from recent writes of this process. */
interface Candidates {
  /**
   * Adds the matches of a query. `shown`: the position of the answer, if it has metadata. It includes the writes of this
   * process up to there, unless another gateway wrote later.
   */
  add(matches: readonly Match[], shown: Lsn): void;
  /** The best with a score above `floor`, at most `limit`, within the bytes of the query. Fetches missing records. */
  best(floor: number, limit: number): Promise<SearchHit[]>;
}

/** Records per fetch, of at most 40 KB each, so that few are in memory beyond those of the answer. */
const READ_AT_ONCE = 400;

function createCandidates(index: GatewayIndex, scoring: Scoring, query: SearchQuery, call: Call): Candidates {
  const { user_id, tags, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
  const userPart = index.ids.userPart(user_id);
  const scores = new Map<string, number>();
  /** Null: deleted, or not matching the query. */
  const known = new Map<string, SearchHit | null>();

  const learn = (id: string, score: number, memory: Memory | undefined) => {
    // The filter asked for this. It is checked again: the index may be wrong, and recent writes were not filtered.
    const matches =
      memory?.user_id === user_id &&
      tags.every((tag) => memory.tags.includes(tag)) &&
      Buffer.byteLength(memory.content) <= max_content_bytes;
    scores.set(id, score);
    known.set(id, matches ? { memory, score } : null);
  };
  /** The vector of a text in which the embedder found nothing has no meaning. */
  const read = (id: string, metadata: Metadata) =>
    learn(id, isEmbedded(metadata) ? (scores.get(id) ?? 0) : 0, toMemory(id, metadata, index.model));

  const ranked = (floor: number, limit: number) =>
    [...scores]
      .map(([id, score]) => ({ id, hit: known.get(id), score: known.get(id)?.score ?? score }))
      .filter(({ score, hit }) => hit !== null && score > floor)
      .sort((a, b) => b.score - a.score || listOrder(a.id, b.id))
      .slice(0, limit);

  return {
    add(matches, shown) {
      for (const { id, score, metadata } of matches) {
        if (parseId(id)?.userPart !== userPart) continue;
        scores.set(id, scoring.ofMatch(score));
        if (metadata) read(id, metadata);
      }
      const { live, deleted } = index.overlay.of(user_id, shown);
      for (const { memory, vector } of live) learn(memory.id, scoring.ofVector(vector), memory);
      for (const id of deleted) known.set(id, null);
    },
    async best(floor, limit) {
      for (;;) {
        const found = ranked(floor, limit);
        const unread = found.filter(({ hit }) => hit === undefined).map(({ id }) => id);
        const first = found.findIndex(({ hit }) => hit === undefined);
        const hits = found.slice(0, first === -1 ? limit : first).map(({ hit }) => hit as SearchHit);
        const count = countWithin(
          hits.map(({ memory }) => memory),
          max_bytes,
        );
        if (count < hits.length) return hits.slice(0, count + 1);
        if (first === -1) return hits;
        const next = unread.slice(0, READ_AT_ONCE);
        const records = await index.service.fetch(index.namespaces.of(userPart), next, call);
        // A record may rank lower than its match did, or be deleted: then others move up.
        for (const id of next) {
          const record = records.get(id);
          if (record) read(id, record.metadata);
          else known.set(id, null);
        }
      }
    },
  };
}
