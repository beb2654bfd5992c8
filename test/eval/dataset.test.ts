import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { analyse } from '#ranking';
import { readDataset } from '../../eval/dataset.ts';
import { fromLocomo } from '../../eval/locomo.ts';

describe('reading a data set', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'omp-eval-test-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const write = async (facts: unknown, questions: unknown): Promise<void> => {
    await writeFile(join(directory, 'facts.json'), JSON.stringify(facts));
    await writeFile(join(directory, 'questions.json'), JSON.stringify(questions));
  };
  const fact = { key: 'tea', user: 'ada', content: 'Ada drinks tea.' };
  const question = { question: 'What does Ada drink?', user: 'ada', kind: 'plain', evidence: ['tea'] };

  it('reads the two files', async () => {
    await write([fact], [question]);
    expect(await readDataset(directory)).toEqual({ facts: [fact], questions: [question] });
  });

  it.each([
    ['share a key', [fact, { ...fact, user: 'bob' }], [question]],
    ['no fact "coffee"', [fact], [{ ...question, evidence: ['coffee'] }]],
    ['asks bob', [fact], [{ ...question, user: 'bob' }]],
    ['too_small', [fact], []],
    ['too_small', [fact], [{ ...question, evidence: [] }]],
  ])('rejects a mistake: %s', async (message, facts, questions) => {
    await write(facts, questions);
    await expect(readDataset(directory)).rejects.toThrow(message);
  });
});

const data = fileURLToPath(new URL('../../eval/data', import.meta.url));
const { facts, questions } = await readDataset(data);
const contents = new Map(facts.map(({ key, content }) => [key, content]));

describe('the evaluation set', () => {
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

const file: { sample_id: string; qa: { question: string; evidence: string[] }[] }[] = JSON.parse(
  await readFile(join(data, 'conversations.json'), 'utf8'),
);
const conversations = fromLocomo(file);

describe('the conversations of the evaluation', () => {
  it('repeat no turn and no question of one user, and are in the order of their times', () => {
    const { facts, questions } = conversations;
    expect(new Set(facts.map(({ key }) => key)).size).toBe(facts.length);
    expect(new Set(questions.map(({ user, question }) => `${user} ${question}`)).size).toBe(questions.length);
    for (const user of new Set(facts.map(({ user }) => user))) {
      const times = facts.filter((fact) => fact.user === user).map(({ at }) => at);
      expect(times, user).toEqual([...new Set(times)].sort());
    }
  });

  it('have evidence for every question, all of it among their turns', () => {
    const asked = file.flatMap(({ sample_id, qa }) =>
      qa.map(({ question, evidence }) => [question, evidence.map((turn) => `${sample_id}/${turn}`)]),
    );
    expect(conversations.questions.map(({ question, evidence }) => [question, evidence])).toEqual(asked);
  });
});
