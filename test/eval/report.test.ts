import { describe, expect, it } from 'vitest';
import type { Answer } from '../../eval/ask.ts';
import { disagreements } from '../../eval/compare.ts';
import { type Run, report } from '../../eval/report.ts';

const answer = (...keys: string[]): Answer => keys.map((key, rank) => ({ key, score: 1 - rank / 100 }));

describe('agreement of two providers', () => {
  const truth: Answer = [
    { key: 'a', score: 0.9 },
    { key: 'b', score: 0.5 },
  ];
  const against = (other: Answer): number[] => disagreements([truth], [other]);

  it('allows a thousandth of score and nothing else', () => {
    expect(against([{ key: 'a', score: 0.9009 }, truth[1] as Answer[number]])).toEqual([]);
    expect(against([{ key: 'a', score: 0.902 }, truth[1] as Answer[number]])).toEqual([0]);
    expect(against([...truth].reverse())).toEqual([0]);
    expect(against(truth.slice(0, 1))).toEqual([0]);
    expect(against([...truth, { key: 'c', score: 0.1 }])).toEqual([0]);
    expect(against(answer('a', 'x'))).toEqual([0]);
  });

  it('refuses to compare different question lists', () => {
    expect(() => disagreements([truth], [])).toThrow('different numbers');
  });
});

describe('the report', () => {
  const questions = [
    { question: 'one?', user: 'u', kind: 'name', evidence: ['a'] },
    { question: 'two?', user: 'u', kind: 'date', evidence: ['b'] },
    { question: 'three?', user: 'u', kind: 'date', evidence: ['c'] },
  ];
  /** Vector answers the first question alone, keyword the second alone, hybrid both. */
  const good: Run = {
    label: 'first',
    answers: {
      vector: [answer('a'), answer('x'), answer('x')],
      keyword: [answer('x'), answer('b'), answer('x')],
      hybrid: [answer('a'), answer('b'), answer('x', 'c')],
    },
  };

  it('passes when hybrid beats both parts and the backends agree', () => {
    const { text, passed } = report(questions, [good, { ...good, label: 'second' }]);
    expect(passed).toBe(true);
    expect(text).toMatch(/vector +0\.333 +0\.333 +0\.333 +0\.333/);
    expect(text).toMatch(/hybrid +0\.667 +1\.000 +1\.000 +0\.833/);
    expect(text).toMatch(/date \(2\) +0\.500 +1\.000 +1\.000 +0\.750/);
    expect(text).toContain('yes second agrees with first: keyword, 0 of 3 differ');
  });

  it('fails when hybrid only equals one of its parts', () => {
    const answers = { ...good.answers, vector: good.answers.hybrid };
    const { text, passed } = report(questions, [{ ...good, answers }]);
    expect(passed).toBe(false);
    expect(text).toContain('NO  hybrid beats vector and keyword: first');
  });

  it('fails when a backend answers one question differently', () => {
    const answers = { ...good.answers, hybrid: [answer('a'), answer('b'), answer('y', 'c')] };
    const { text, passed } = report(questions, [good, { label: 'second', answers }]);
    expect(passed).toBe(false);
    expect(text).toContain('NO  second agrees with first: hybrid, 1 of 3 differ "three?"');
  });
});
