import {
  type Call,
  invalidRequest,
  type Memory,
  recordBytes,
  type SearchHit,
  type SearchQuery,
  upToBytes,
} from '#contract';
import { toUnit } from '#ranking';
import { MAX_TOP_K } from '../client/client.ts';
import { userFilter } from '../filter.ts';
import { createScoring, isZero } from '../score.ts';
import { newestFirst } from './mapped-list.ts';
import { requireTagsField, toMemory } from './mapped-record.ts';
import { askNearest } from './nearest.ts';
import type { Existing } from './parts.ts';

export type Search = (query: SearchQuery, call: Call) => Promise<SearchHit[]>;

/** Where some matches are no memories of the user, this many times more are asked for. */
const GROWTH = 4;

/** The nearest by the index's metric; ties, and those without any likeness, in the order of lists. */
export function createSearch(existing: Existing): Search {
  const { fields, metric, overlay } = existing;

  return async (query, call) => {
    const { user_id, tags, limit, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
    requireTagsField(fields, tags);
    const vector = toUnit(query.vector);
    // A text without signal is like nothing.
    const scoring = isZero(vector) ? { ofMatch: () => 0, ofVector: () => 0 } : createScoring(metric, vector);
    const filter = userFilter(user_id, tags, { user: fields.user, tags: fields.tags ?? '' });
    // What a filter let through is not believed.
    const isWanted = (memory: Memory) =>
      memory.user_id === user_id &&
      tags.every((tag) => memory.tags.includes(tag)) &&
      Buffer.byteLength(memory.content) <= max_content_bytes;

    /** With what this gateway wrote lately, which the index need not show yet. */
    const best = (stored: readonly SearchHit[]): SearchHit[] => {
      const recent = overlay.of(user_id).live.filter(({ memory }) => isWanted(memory));
      const hits = recent.map((written) => ({ memory: written.memory, score: scoring.ofVector(written.vector) }));
      const order = (a: SearchHit, b: SearchHit) => b.score - a.score || newestFirst(a.memory, b.memory);
      const found = [...stored, ...hits].sort(order).slice(0, limit);
      return upToBytes(found, max_bytes, ({ memory }) => memory);
    };

    for (let wanted = limit; ; wanted *= GROWTH) {
      const topK = Math.min(wanted, MAX_TOP_K);
      const { matches, exhausted } = await askNearest(existing, { vector, topK, filter }, call);
      const hits: SearchHit[] = [];
      let bytes = 0;
      for await (const { id, score, metadata } of matches) {
        const memory = metadata && toMemory(fields, id, metadata);
        if (memory && isWanted(memory) && overlay.get(id) === undefined) {
          hits.push({ memory, score: scoring.ofMatch(score) });
          bytes += recordBytes(memory);
        }
        if (hits.length === limit || (bytes > max_bytes && hits.length > 1)) return best(hits);
      }
      if (exhausted) return best(hits);
      // Short of the page and no way to see further: saying nothing would be a silently partial answer.
      if (topK === MAX_TOP_K) throw invalidRequest('too many records without text rank before these; lower limit');
    }
  };
}
