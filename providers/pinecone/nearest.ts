import { type Call, type FoundPoint, invalidRequest, type Match } from '#provider';
import { type Filter, type Lsn, MAX_TOP_K, type Metadata, type Service } from './client/client.ts';
import type { Overlay } from './overlay.ts';
import { type Metric, measureOf } from './score.ts';

/** After too few matches, the next query asks for this many times as many. */
const GROWTH = 4;

interface Searched {
  readonly service: Pick<Service, 'query'>;
  readonly overlay: Overlay;
  readonly metric: Metric;
}

interface NearestRequest {
  readonly namespace: string;
  /** Whose recent writes may be found. */
  readonly owner: string;
  readonly filter: Filter;
  readonly vector: Float32Array;
  readonly limit: number;
  /** Pinecone rejects answers of more than 4 MB: a query for more asks for no metadata. */
  readonly with_metadata: number;
  /** The most that the first query asks for. */
  readonly first: number;
  /** The point of a match; undefined: it is none. Without metadata, what its id says. */
  toPoint(id: string, metadata: Metadata | undefined): FoundPoint | undefined;
  /** Whether a point that was read matches. The index may be wrong, and recent writes were not filtered. */
  isWanted(point: FoundPoint): boolean;
  /** Gets the position of each answer. */
  saw?(lsn: Lsn): void;
}

/** The nearest points of a user, with the recent writes of this process. */
export async function nearest(
  { service, overlay, metric }: Searched,
  { namespace, owner, filter, vector, limit, with_metadata, first, toPoint, isWanted, saw }: NearestRequest,
  call: Call,
): Promise<Match[]> {
  const measure = measureOf(metric, vector);
  const sign = metric === 'euclidean' ? 1 : -1;
  const { live, deleted } = overlay.of(owner);
  // Recent writes may remove some.
  const ample = Math.min(limit + live.length + deleted.size, MAX_TOP_K);
  const known = new Map<string, FoundPoint | undefined>();

  for (let topK = Math.min(ample, first); ; topK = Math.min(Math.max(topK * GROWTH, ample), MAX_TOP_K)) {
    const includeMetadata = topK <= with_metadata;
    const { matches, indexedLsn } = await service.query(namespace, { vector, topK, filter, includeMetadata }, call);
    saw?.(indexedLsn);
    // What an answer with metadata shows needs no completion; another gateway may have written it later.
    const recent = overlay.of(owner, includeMetadata ? indexedLsn : undefined);
    const found = new Map<string, Match>();
    for (const { id, score, metadata } of matches) {
      if (recent.deleted.has(id)) continue;
      if (metadata) known.set(id, toPoint(id, metadata));
      const isKnown = known.has(id);
      const point = isKnown ? known.get(id) : toPoint(id, undefined);
      if (point && (!isKnown || isWanted(point))) found.set(id, { ...point, measure: score });
    }
    for (const point of recent.live) {
      if (isWanted(point)) found.set(point.id, { ...point, measure: measure(point.vector) });
      else found.delete(point.id);
    }
    const last = matches.length < topK ? undefined : matches.at(-1)?.score;
    // Those that were not found are at most as near as the last match.
    const final = [...found.values()].filter(({ measure }) => last === undefined || sign * (measure - last) <= 0);
    const best = final.sort((a, b) => sign * (a.measure - b.measure)).slice(0, limit);
    if (best.length === limit || last === undefined) return best;
    // A larger query is impossible; without an error the answer would be silently partial.
    if (topK === MAX_TOP_K)
      throw invalidRequest(
        'too many memories that were just changed or deleted rank before the rest; lower limit, or try again later',
      );
  }
}
