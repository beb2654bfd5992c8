import type { Memory, SearchHit } from '#contract';
import { roundScore } from '#ranking';
import { newestFirst } from '#toolbox';
import type { MarkedHit } from '../core/current-memories.ts';

/*
 * Ranks memories by what was said around them (Decision 57). The score of a search stays what it is; `context` alone ranks so.
 */

/*
 * The weights were found on the first half of the conversations of `npm run eval`, on a grid with steps of 0.05 and 0.2, and 1 to 3 best
 * scores. On the other half, contexts of 500, 1,000 and 2,000 tokens hold 0.701, 0.800 and 0.890 of the evidence, instead of 0.585, 0.670
 * and 0.772 without conversations. Weights from 0.25 to 0.4 and from 1.2 to 1.6 differ by up to 0.01.
 */

/** Weight of the better of the two neighbours of a memory in its conversation. */
const NEIGHBOUR_WEIGHT = 0.3;
/** Weight of the mean of the `STRONGEST` best scores of its conversation. */
const CONVERSATION_WEIGHT = 1.2;
/** Hits whose neighbours are read. */
const ANCHORS = 30;
const STRONGEST = 2;

/** How the memories of a store belong to conversations. */
export interface Conversations {
  /** Whether the store of the memory can find neighbours. */
  isAble(memory: Memory): boolean;
  /** The memories next to these. */
  neighbours(anchors: readonly Memory[]): Promise<readonly Memory[]>;
}

/** Why a memory stands where it does: those of conversations are ordered by `search` + `weights` · the other two. */
interface Reasons {
  /** The score of its search; null: no search found it, a neighbour brought it in. */
  readonly search: number | null;
  /** The better score of its two neighbours, and the mean of the best of its conversation; null: it is in none. */
  readonly neighbour: number | null;
  readonly conversation: number | null;
}

/** `Reasons` for the answer. */
export interface Explanation extends Reasons {
  readonly weights: { readonly neighbour: number; readonly conversation: number };
  /** Whether the store of the memory can find neighbours. */
  readonly neighbours: boolean;
}

/** Explains the place of a memory. `conversations`: undefined if no store can find neighbours. */
export const explainPlace = ({ memory, reasons }: RankedHit, conversations?: Conversations): Explanation => ({
  search: reasons.search,
  neighbour: reasons.neighbour,
  conversation: reasons.conversation === null ? null : roundScore(reasons.conversation),
  weights: { neighbour: NEIGHBOUR_WEIGHT, conversation: CONVERSATION_WEIGHT },
  neighbours: conversations?.isAble(memory) === true,
});

export interface RankedHit extends MarkedHit {
  readonly reasons: Reasons;
}

/** Tells the conversation of a memory; undefined: it is in none that counts. */
export type ConversationOf = (memory: Memory) => string | undefined;

/** The best hits with a conversation. */
export const anchorsOf = (hits: readonly SearchHit[], of: ConversationOf): Memory[] =>
  hits
    .map(({ memory }) => memory)
    .filter((memory) => of(memory) !== undefined)
    .slice(0, ANCHORS);

interface Candidate extends RankedHit {
  /** Compares memories of conversations with each other only. */
  readonly strength: number;
}

/**
 * The hits and their neighbours, best first. Memories of conversations trade places by their strength: the strongest gets the best
 * score that one of them had, and so on. So a memory in no conversation keeps its score, and as many stand before it as before.
 * Neighbours that the search did not find lengthen the ranking: those beyond its last place get less than the lowest of all scores, in
 * proportion to their strength.
 */
export function rankByConversation(
  hits: readonly SearchHit[],
  neighbours: readonly Memory[],
  of: ConversationOf,
): RankedHit[] {
  const scores = new Map(hits.map(({ memory, score }) => [memory.id, score]));
  const conversations = new Map<string, Memory[]>();
  const places: number[] = [];
  const others: RankedHit[] = [];
  const enter = (memory: Memory): boolean => {
    const name = of(memory);
    if (name === undefined) return false;
    const memories = conversations.get(name);
    if (memories) memories.push(memory);
    else conversations.set(name, [memory]);
    return true;
  };
  for (const hit of hits) {
    if (enter(hit.memory)) places.push(hit.score);
    else others.push({ ...hit, reasons: { search: hit.score, neighbour: null, conversation: null } });
  }
  for (const memory of neighbours) if (!scores.has(memory.id)) enter(memory);
  const candidates = [...conversations.values()]
    .flatMap((memories) => candidatesOf(memories, scores))
    .sort((a, b) => b.strength - a.strength || newestFirst(a.memory, b.memory));
  places.sort((a, b) => b - a);
  const lowest = hits.reduce((least, { score }) => Math.min(least, score), 1);
  const last = candidates[places.length - 1]?.strength ?? 1;
  const ranked = candidates.map(({ memory, strength, reasons }, place): RankedHit => {
    const score = places[place] ?? roundScore((lowest * strength) / last);
    return { memory, score, reasons };
  });
  return others.length === 0 ? ranked : [...others, ...ranked].sort((a, b) => b.score - a.score);
}

/** The memories of one conversation. */
function candidatesOf(memories: readonly Memory[], scores: ReadonlyMap<string, number>): Candidate[] {
  const inOrder = memories.toSorted((a, b) => newestFirst(b, a));
  const own = inOrder.map(({ id }) => scores.get(id) ?? 0);
  const best = own.toSorted((a, b) => b - a).slice(0, STRONGEST);
  const conversation = best.reduce((sum, score) => sum + score, 0) / STRONGEST;
  return inOrder.map((memory, at) => {
    const neighbour = Math.max(own[at - 1] ?? 0, own[at + 1] ?? 0);
    const score = own[at] as number;
    return {
      memory,
      score,
      strength: score + NEIGHBOUR_WEIGHT * neighbour + CONVERSATION_WEIGHT * conversation,
      reasons: { search: scores.get(memory.id) ?? null, neighbour, conversation },
    };
  });
}
