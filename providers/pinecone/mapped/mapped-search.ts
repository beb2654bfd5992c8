import {
  byScore,
  type Call,
  invalidRequest,
  type Memory,
  type Provider,
  recordBytes,
  type SearchHit,
  toUnit,
  upToBytes,
} from '#provider';
import { MAX_FETCHED, MAX_TOP_K, type Match, type QueryRequest, validIds } from '../client/client.ts';
import { userFilter } from '../filter.ts';
import { createScoring, isZero } from '../score.ts';
import { type MappedIndex, requireTagsField, toMemory } from './mapped-record.ts';

/** If some matches are not memories of the user, the next query asks for this many times as many. */
const GROWTH = 4;

/** Ranks by the index's metric; equal scores, and those of 0, in the order of lists. */
export function createMappedSearch(index: MappedIndex): Provider['search'] {
  const { fields, metric, overlay } = index;

  return async (query, call) => {
    const { user_id, tags, limit, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
    requireTagsField(fields, tags);
    const vector = toUnit(query.vector);
    // The embedder found nothing in the text: nothing is similar.
    const scoring = isZero(vector) ? { ofMatch: () => 0, ofVector: () => 0 } : createScoring(metric, vector);
    const filter = userFilter(user_id, tags, { user: fields.user, tags: fields.tags ?? '' });
    // Checked again: the filter's result is not trusted.
    const matchesQuery = (memory: Memory) =>
      memory.user_id === user_id &&
      tags.every((tag) => memory.tags.includes(tag)) &&
      Buffer.byteLength(memory.content) <= max_content_bytes;

    /** Adds recent writes of this gateway, which the index may not show yet. */
    const best = (indexHits: readonly SearchHit[]): SearchHit[] => {
      const recent = overlay.of(user_id).live.filter(({ memory }) => matchesQuery(memory));
      const hits = recent.map((write) => ({ memory: write.memory, score: scoring.ofVector(write.vector) }));
      const all = [...indexHits, ...hits].sort(byScore).slice(0, limit);
      return upToBytes(all, max_bytes, ({ memory }) => memory);
    };

    for (let count = limit; ; count *= GROWTH) {
      const topK = Math.min(count, MAX_TOP_K);
      const { matches, exhausted } = await queryNearest(index, { vector, topK, filter }, call);
      const hits: SearchHit[] = [];
      let bytes = 0;
      for await (const { id, score, metadata } of matches) {
        const memory = metadata && toMemory(fields, id, metadata);
        if (memory && matchesQuery(memory) && overlay.get(id) === undefined) {
          hits.push({ memory, score: scoring.ofMatch(score) });
          bytes += recordBytes(memory);
        }
        if (hits.length === limit || (bytes > max_bytes && hits.length > 1)) return best(hits);
      }
      if (exhausted) return best(hits);
      // The page is not full and a larger query is impossible: without an error the answer would be silently partial.
      if (topK === MAX_TOP_K) throw invalidRequest('too many records without text rank before these; lower limit');
    }
  };
}

interface Nearest {
  /** Nearest first, with metadata, which is fetched as far as matches are read. */
  readonly matches: Iterable<Match> | AsyncIterable<Match>;
  /** Whether there are no more matches. */
  readonly exhausted: boolean;
}

/** Pinecone rejects answers of more than 4 MB: so many matches fit with at most 40 KB of metadata each. */
const MAX_TOP_K_WITH_METADATA = 95;
/** Queries the `topK` records nearest to a vector. */
async function queryNearest(
  { service, namespace }: Pick<MappedIndex, 'service' | 'namespace'>,
  request: Omit<QueryRequest, 'includeMetadata'>,
  call: Call,
): Promise<Nearest> {
  const query = async (includeMetadata: boolean) =>
    (await service.query(namespace, { ...request, includeMetadata }, call)).matches;
  const withMetadata = request.topK <= MAX_TOP_K_WITH_METADATA;
  const matches = await query(withMetadata);

  async function* read(): AsyncGenerator<Match> {
    for (let start = 0; start < matches.length; start += MAX_FETCHED) {
      const chunk = matches.slice(start, start + MAX_FETCHED);
      const ids = chunk.map(({ id }) => id);
      const records = await service.fetch(namespace, ids, call);
      // Ids that cannot be fetched, such as those with spaces, need a query with metadata, which may fail.
      const answer = validIds(ids).length < ids.length ? await query(true) : [];
      const others = new Map(answer.map((match) => [match.id, match]));
      for (const match of chunk) {
        yield { ...match, metadata: (records.get(match.id) ?? others.get(match.id))?.metadata };
      }
    }
  }
  return { matches: withMetadata ? matches : read(), exhausted: matches.length < request.topK };
}
