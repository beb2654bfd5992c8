import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** One memory of one user. The key identifies it across providers, whose ids differ. */
const Fact = z.object({ key: z.string().min(1), user: z.string().min(1), content: z.string().min(1) });

/** `evidence`: the keys of every fact that belongs to the answer. */
const Question = z.object({
  question: z.string().min(1),
  user: z.string().min(1),
  kind: z.string().min(1),
  evidence: z.array(z.string()).min(1),
});

type Fact = z.output<typeof Fact>;
export type Question = z.output<typeof Question>;

export interface Dataset {
  readonly facts: readonly Fact[];
  readonly questions: readonly Question[];
}

/** A memory that is a turn of a conversation. */
export interface Turn extends Fact {
  /** The session: turns with the same belong together. */
  readonly ref: string;
  readonly at: string;
}

export interface Conversations extends Dataset {
  readonly facts: readonly Turn[];
  /** `now`: when the question is asked, if it depends on that. */
  readonly questions: readonly (Question & { readonly now?: string })[];
}

/** Reads `facts.json` and `questions.json`, two arrays. Throws if a question names evidence that its user does not have. */
export async function readDataset(directory: string): Promise<Dataset> {
  const read = async (file: string): Promise<unknown> => JSON.parse(await readFile(join(directory, file), 'utf8'));
  return checked({
    facts: z
      .array(Fact)
      .min(1)
      .parse(await read('facts.json')),
    questions: z
      .array(Question)
      .min(1)
      .parse(await read('questions.json')),
  });
}

function checked(dataset: Dataset): Dataset {
  const owners = new Map(dataset.facts.map(({ key, user }) => [key, user]));
  if (owners.size < dataset.facts.length) throw new Error('Two facts share a key.');
  for (const { question, user, evidence } of dataset.questions) {
    for (const key of evidence) {
      if (owners.get(key) !== user) throw new Error(`"${question}" asks ${user}, who has no fact "${key}".`);
    }
  }
  return dataset;
}
