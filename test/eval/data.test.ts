import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { analyse } from '#ranking';
import { readDataset } from '../../eval/dataset.ts';

const { facts, questions } = await readDataset(fileURLToPath(new URL('../../eval/data', import.meta.url)));
const contents = new Map(facts.map(({ key, content }) => [key, content]));

const countBy = (values: readonly string[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
};

describe('the evaluation set', () => {
  it('has facts enough, of people enough, each with facts enough to confuse', () => {
    expect(facts.length).toBeGreaterThanOrEqual(250);
    const perUser = countBy(facts.map(({ user }) => user));
    expect(perUser.size).toBeGreaterThanOrEqual(8);
    for (const [user, count] of perUser) expect(count, user).toBeGreaterThanOrEqual(25);
  });

  it('asks at least 200 questions, at least 12 of every kind', () => {
    expect(questions.length).toBeGreaterThanOrEqual(200);
    const perKind = countBy(questions.map(({ kind }) => kind));
    const kinds = ['code', 'date', 'multi', 'name', 'near_duplicate', 'negation', 'number', 'paraphrase', 'plain'];
    expect([...perKind.keys()].sort()).toEqual(kinds);
    for (const [kind, count] of perKind) expect(count, kind).toBeGreaterThanOrEqual(12);
  });

  it('repeats no key, no fact of one user and no question of one user', () => {
    expect(new Set(facts.map(({ key }) => key)).size).toBe(facts.length);
    expect(new Set(facts.map(({ user, content }) => `${user} ${content}`)).size).toBe(facts.length);
    expect(new Set(questions.map(({ user, question }) => `${user} ${question}`)).size).toBe(questions.length);
  });

  it('has one piece of evidence for a question, or two to three for the kind "multi"', () => {
    for (const { question, kind, evidence } of questions) {
      expect(new Set(evidence).size, question).toBe(evidence.length);
      if (kind === 'multi') expect([2, 3], question).toContain(evidence.length);
      else expect(evidence, question).toHaveLength(1);
    }
  });

  it('paraphrases without a term of the evidence', () => {
    for (const { question, evidence } of questions.filter(({ kind }) => kind === 'paraphrase')) {
      const asked = analyse(question);
      expect(asked.length, question).toBeGreaterThan(0);
      const stored = new Set(evidence.flatMap((key) => analyse(contents.get(key) ?? '')));
      expect(
        asked.filter((term) => stored.has(term)),
        question,
      ).toEqual([]);
    }
  });
});
