import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readDataset } from '../../eval/dataset.ts';

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

  it('refuses two facts of one key', async () => {
    await write([fact, { ...fact, user: 'bob' }], [question]);
    await expect(readDataset(directory)).rejects.toThrow('share a key');
  });

  it('refuses evidence that is missing or belongs to another user', async () => {
    await write([fact], [{ ...question, evidence: ['coffee'] }]);
    await expect(readDataset(directory)).rejects.toThrow('no fact "coffee"');
    await write([fact], [{ ...question, user: 'bob' }]);
    await expect(readDataset(directory)).rejects.toThrow('asks bob');
  });

  it('refuses a set without questions, and a question without evidence', async () => {
    await write([fact], []);
    await expect(readDataset(directory)).rejects.toThrow();
    await write([fact], [{ ...question, evidence: [] }]);
    await expect(readDataset(directory)).rejects.toThrow();
  });
});
