import { type Call, countWithin, type Memory, type SearchHit, type SearchQuery } from '#contract';
import type { Lsn, Match, Metadata } from './client/client.ts';
import { listOrder, parseId } from './gateway-index/ids.ts';
import type { GatewayIndex } from './gateway-index/gateway-record.ts';
import { isEmbedded, toMemory } from './gateway-index/gateway-record.ts';
import type { Scoring } from './score.ts';

/** What one search has found so far, in the index and among what this process wrote lately. */
export interface Candidates {
  /**
   * Takes what a query found; what was written meanwhile counts as written before. `shown`: how far the answer saw,
   * where it had the metadata along. What this process wrote up to there is in the answer, or another gateway wrote later.
   */
  add(matches: readonly Match[], shown: Lsn): void;
  /**
   * The best that score above `floor`, at most `limit`, read from the index where need be, no more of them than the
   * bytes of the query allow.
   */
  best(floor: number, limit: number): Promise<SearchHit[]>;
}

/** Records at a time, so that no more are held than an answer takes: 40 KB each at most. */
const READ_AT_ONCE = 400;

export function createCandidates(own: GatewayIndex, scoring: Scoring, query: SearchQuery, call: Call): Candidates {
  const { user_id, tags, max_bytes, max_content_bytes = Number.POSITIVE_INFINITY } = query;
  const userPart = own.ids.userPart(user_id);
  const scores = new Map<string, number>();
  /** Null: not to be shown, since it is gone or not what was asked for. */
  const known = new Map<string, SearchHit | null>();

  const learn = (id: string, score: number, memory: Memory | undefined) => {
    // The filter has seen to this; here it is seen to whatever the index made of it, and of what was changed since.
    const admitted =
      memory?.user_id === user_id &&
      tags.every((tag) => memory.tags.includes(tag)) &&
      Buffer.byteLength(memory.content) <= max_content_bytes;
    scores.set(id, score);
    known.set(id, admitted ? { memory, score } : null);
  };
  /** A text without signal is kept under a vector that says nothing. */
  const read = (id: string, metadata: Metadata) =>
    learn(id, isEmbedded(metadata) ? (scores.get(id) ?? 0) : 0, toMemory(id, metadata, own.model));

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
      const { live, deleted } = own.overlay.of(user_id, shown);
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
        const records = await own.service.fetch(own.namespaces.of(userPart), next, call);
        // What is read may rank lower than it seemed, or be gone: then others move up.
        for (const id of next) {
          const record = records.get(id);
          if (record) read(id, record.metadata);
          else known.set(id, null);
        }
      }
    },
  };
}
