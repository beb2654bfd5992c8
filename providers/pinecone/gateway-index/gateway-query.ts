import { type FoundPoint, invalidRequest, type Match, type Points } from '#provider';
import { MAX_TOP_K } from '../client/client.ts';
import { userFilter } from '../filter.ts';
import { measureOf } from '../score.ts';
import { type GatewayIndex, wantedOf } from './gateway-reads.ts';
import { toFields } from './gateway-record.ts';
import { parseId } from './ids.ts';

/** Pinecone rejects answers of more than 4 MB: a query asks for metadata only if they fit in any case. */
const MAX_ANSWER_BYTES = 4_000_000;
const MAX_MATCH_BYTES = 40_960 + 240;
const MAX_WITH_METADATA = Math.floor(MAX_ANSWER_BYTES / MAX_MATCH_BYTES);
/** After too few matches, the next query asks for this many times as many. */
const GROWTH = 4;

/**
 * The nearest points of a user that have the tags. Takes one request for at most 97 points; for more, a second one, whose points have ids
 * only; still more if many of the best were just changed or deleted.
 */
export function createQuery({ service, ids, namespaces, overlay, consistency, metric }: GatewayIndex): Points['query'] {
  return async ({ vector, filter, limit }, call) => {
    const { user_id, tags } = wantedOf(filter);
    const userPart = ids.userPart(user_id);
    const namespace = namespaces.of(userPart);
    await consistency.caughtUp(namespace, call);
    const measure = measureOf(metric, vector);
    const sign = metric === 'euclidean' ? 1 : -1;
    // The filter asked for this. It is checked again: the index may be wrong, and recent writes were not filtered.
    const isWanted = ({ fields }: FoundPoint) =>
      fields.user_id === user_id && tags.every((tag) => (fields.tags as readonly string[]).includes(tag));
    const { live, deleted } = overlay.of(userPart);
    // Recent writes may remove some.
    const ample = limit + live.length + deleted.size;
    const known = new Map<string, FoundPoint | undefined>();

    for (let topK = Math.min(ample, MAX_WITH_METADATA); ; topK = Math.min(Math.max(topK * GROWTH, ample), MAX_TOP_K)) {
      const includeMetadata = topK <= MAX_WITH_METADATA;
      const request = { vector, topK, filter: userFilter(user_id, tags), includeMetadata };
      const { matches, indexedLsn } = await service.query(namespace, request, call);
      consistency.saw(namespace, indexedLsn);
      // What an answer with metadata shows needs no completion; another gateway may have written it later.
      const recent = overlay.of(userPart, includeMetadata ? indexedLsn : undefined);
      const found = new Map<string, Match>();
      for (const { id, score, metadata } of matches) {
        const parts = parseId(id);
        if (parts?.userPart !== userPart || recent.deleted.has(id)) continue;
        if (metadata) {
          const fields = toFields(id, metadata);
          known.set(id, fields && { id, fields });
        }
        const point = known.has(id) ? known.get(id) : { id, fields: { memory_id: id, created: parts.created_ms } };
        if (point && (point.fields.user_id === undefined || isWanted(point)))
          found.set(id, { ...point, measure: score });
      }
      for (const point of recent.live) {
        if (isWanted(point)) found.set(point.id, { ...point, measure: measure(point.vector) });
        else found.delete(point.id);
      }
      const last = matches.length < topK ? undefined : matches.at(-1)?.score;
      // Those that were not found are at most as near as the last match.
      const final = [...found.values()].filter(({ measure }) => last === undefined || sign * (measure - last) <= 0);
      const nearest = final.sort((a, b) => sign * (a.measure - b.measure)).slice(0, limit);
      if (nearest.length === limit || last === undefined) return nearest;
      // A larger query is impossible; without an error the answer would be silently partial.
      if (topK === MAX_TOP_K)
        throw invalidRequest(
          'too many memories that were just changed or deleted rank before the rest; lower limit, or try again later',
        );
    }
  };
}
