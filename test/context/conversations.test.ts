import { describe, expect, it } from 'vitest';
import type { Memory, SearchHit } from '#contract';
import { explainPlace, type RankedHit, rankByConversation } from '../../src/context/conversations.ts';
import { conversationOf } from '../../src/toolbox/index.ts';
import { memoryOf } from '../support/requests.ts';

/** The memory `talk 3` is the third of a talk; one without a number is in no conversation. */
const memory = (id: string): Memory => {
  const [ref, at] = id.split(' ');
  const created_at = new Date(Number(at ?? 0)).toISOString();
  const source = at === undefined ? null : { ref: ref as string };
  return {
    ...memoryOf('u', id, { source }),
    id,
    created_at,
    updated_at: created_at,
    embedding_model: null,
    status: 'done',
  };
};
const hits = (scores: Readonly<Record<string, number>>): SearchHit[] =>
  Object.entries(scores).map(([id, score]) => ({ memory: memory(id), score }));
const rank = (scores: Readonly<Record<string, number>>, ...neighbours: string[]): RankedHit[] =>
  rankByConversation(hits(scores), neighbours.map(memory), conversationOf);
const places = (ranked: readonly RankedHit[]) => ranked.map(({ memory, score }) => [memory.id, score]);

describe('conversations', () => {
  it('[Decision 57] without a ref, hits stay as they are', () => {
    const scores = { a: 0.5, b: 0.5, c: 0.1 };
    expect(places(rank(scores))).toEqual(Object.entries(scores));
    expect(rank(scores)[0]?.reasons).toEqual({ search: 0.5, neighbour: null, conversation: null });
  });

  it('[Decision 57] with a ref but alone in their conversations, hits stay as they are', () => {
    const scores = { 'a 1': 0.5, 'b 1': 0.4, 'c 1': 0.1 };
    expect(places(rank(scores))).toEqual(Object.entries(scores));
  });

  it('[Decision 57] the strong conversation and the neighbours of good hits come first', () => {
    const ranked = rank({ 'lone 1': 0.5, 'talk 1': 0.48, 'talk 2': 0.2, 'talk 9': 0.45 });
    expect(ranked.map((one) => one.memory.id)).toEqual(['talk 1', 'talk 9', 'talk 2', 'lone 1']);
    expect(ranked[0]?.reasons).toEqual({ search: 0.48, neighbour: 0.2, conversation: (0.48 + 0.45) / 2 });
    expect(ranked.map(({ score }) => score)).toEqual([0.5, 0.48, 0.45, 0.2]);
  });

  it('[Decision 57] neighbours that no search found come in, behind the memory that brings them', () => {
    const ranked = rank({ 'talk 2': 0.5 }, 'talk 1', 'talk 3', 'talk 2');
    expect(ranked.map((one) => one.memory.id)).toEqual(['talk 2', 'talk 3', 'talk 1']);
    const { weights } = explainPlace(ranked[0] as RankedHit);
    const strength = (own: number, neighbour: number) =>
      own + weights.neighbour * neighbour + (weights.conversation * 0.5) / 2;
    expect(ranked[1]?.score).toBeCloseTo((0.5 * strength(0, 0.5)) / strength(0.5, 0), 5);
    expect(ranked[1]?.reasons).toEqual({ search: null, neighbour: 0.5, conversation: 0.5 / 2 });
  });

  it('[Decision 57] a memory without a ref keeps its score, and as many hits stand before it', () => {
    const talk = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`talk ${i}`, 0.49 - i / 100]));
    const ranked = rank({ first: 0.6, 'talk 90': 0.5, fact: 0.495, ...talk }, 'talk 91', 'talk 89');
    expect(ranked.findIndex((one) => one.memory.id === 'first')).toBe(0);
    expect(places(ranked)[2]).toEqual(['fact', 0.495]);
    const scores = ranked.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
  });

  it('[Decision 57] neighbours that get no place of a hit come after all hits', () => {
    const talks = Array.from({ length: 30 }, (_, i) => `t${i}`);
    const facts = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`fact${i}`, 0.27]));
    const scores = { ...Object.fromEntries(talks.map((talk) => [`${talk} 2`, 0.5])), ...facts };
    const ranked = rank(scores, ...talks.flatMap((talk) => [`${talk} 1`, `${talk} 3`]));
    expect(ranked.slice(30, 60).map((one) => one.memory.id)).toEqual(Object.keys(facts));
  });

  it('[Decision 57] users, scopes and applications do not share a conversation', () => {
    const one = memory('talk 1');
    const others: Memory[] = [
      { ...one, user_id: 'v' },
      { ...one, scope: 'x' },
      { ...one, source: { ref: 'talk', app: 'a' } },
      { ...one, source: { ref: 'walk' } },
    ];
    expect(new Set([one, ...others].map(conversationOf)).size).toBe(5);
    expect(conversationOf({ ...one, source: { app: 'a' } })).toBeUndefined();
  });
});
