import {
  type Call,
  countWithin,
  invalidRequest,
  type ListQuery,
  type Memory,
  type SearchHit,
  type SearchQuery,
  upToBytes,
} from '#contract';
import { createCandidates } from './candidates.ts';
import { MAX_TOP_K } from './client/client.ts';
import { userFilter } from './filter.ts';
import type { GatewayIndex } from './gateway-index/gateway-record.ts';
import { createScoring, isZero } from './score.ts';

export interface SearchParts {
  readonly own: GatewayIndex;
  /** The vector of a query. */
  embed(text: string, call: Call): Promise<Float32Array>;
  list(query: ListQuery, call: Call): Promise<Memory[]>;
}

/** The service refuses to answer with more than 4 MB: metadata come along only where they are sure to fit. */
const MOST_ANSWER_BYTES = 4_000_000;
const MOST_MATCH_BYTES = 40_960 + 240;
const MOST_WITH_METADATA = Math.floor(MOST_ANSWER_BYTES / MOST_MATCH_BYTES);

/** Where too few were asked for, this many times as many are next. */
const GROWTH = 4;

/** Of a query that found everything there is: every score lies above. */
const BELOW_ALL = -1;

/**
 * Ranks every memory of the user that carries the tags: by cosine, and where that is 0 or less, newest first. One
 * request where at most 96 are wanted or the user has no more; for larger pages a second one for ids, and records by id;
 * more where many of the best were just changed or score alike. Ties of more than 10,000 are left as the index has them.
 */
export function createSearch({ own, embed, list }: SearchParts) {
  const newest = async (query: SearchQuery, call: Call): Promise<SearchHit[]> => {
    const { user_id, tags, limit, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
    const memories = await list({ user_id, tags, limit, max_bytes, within: null }, call);
    const short = memories.filter(({ content }) => Buffer.byteLength(content) <= max_content_bytes);
    return short.map((memory) => ({ memory, score: 0 }));
  };

  return async (query: SearchQuery, call: Call): Promise<SearchHit[]> => {
    const { user_id, tags, limit, max_bytes } = query;
    const vector = await embed(query.text, call);
    if (isZero(vector)) return newest(query, call);
    const namespace = own.namespaces.of(own.ids.userPart(user_id));
    await own.consistency.caughtUp(namespace, call);
    const scoring = createScoring(own.metric, vector);
    const candidates = createCandidates(own, scoring, query, call);
    const { live, deleted } = own.overlay.of(user_id);
    // One more than wanted shows where the page ends; recent writes may take others away.
    const ample = limit + 1 + live.length + deleted.size;

    for (let topK = Math.min(ample, MOST_WITH_METADATA); ; topK = Math.min(Math.max(topK * GROWTH, ample), MAX_TOP_K)) {
      const includeMetadata = topK <= MOST_WITH_METADATA;
      const request = { vector, topK, filter: userFilter(user_id, tags), includeMetadata };
      const { matches, indexedLsn } = await own.service.query(namespace, request, call);
      own.consistency.saw(namespace, indexedLsn);
      candidates.add(matches, includeMetadata ? indexedLsn : undefined);

      // What was not found scores at most this: only what scores more has its place for sure.
      const floor = matches.length < topK ? BELOW_ALL : scoring.ofMatch(matches.at(-1)?.score ?? 0);
      const hits = await candidates.best(floor, limit);
      if (isFull(hits, query) || floor === BELOW_ALL) return hits;
      // Nothing else has a score. A list minds tags only after reading: a wider query is cheaper for as long as there is one.
      if (floor === 0 && (tags.length === 0 || topK === MAX_TOP_K)) {
        const ranked = new Set(hits.map(({ memory }) => memory.id));
        const rest = (await newest(query, call)).filter(({ memory }) => !ranked.has(memory.id));
        return upToBytes([...hits, ...rest].slice(0, limit), max_bytes, ({ memory }) => memory);
      }
      if (topK === MAX_TOP_K) {
        // All that could be found; those that tie at its end are as good as others that were not found.
        const all = await candidates.best(floor - Number.EPSILON, limit);
        if (isFull(all, query)) return all;
        throw invalidRequest(
          'too many memories that were just changed or deleted rank before the rest; lower limit, or try again later',
        );
      }
    }
  };
}

/** Whether there is no room for more. */
const isFull = (hits: readonly SearchHit[], { limit, max_bytes }: SearchQuery): boolean =>
  hits.length === limit ||
  countWithin(
    hits.map(({ memory }) => memory),
    max_bytes,
  ) < hits.length;
