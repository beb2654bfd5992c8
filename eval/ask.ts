import { setImmediate } from 'node:timers/promises';
import type { Call, NewMemory } from '#contract';
import type { Store } from '../src/core/store.ts';
import type { Dataset } from './dataset.ts';

/** The result of a search: fact keys, best first. */
export type Answer = readonly { readonly key: string; readonly score: number }[];

/** As many hits as recall@10 needs, and the protocol's default. */
const LIMIT = 10;

/** Stores the facts in an empty provider and asks every question. Returns one answer per question, in order. */
export async function askAll(provider: Store, dataset: Dataset, call: Call): Promise<Answer[]> {
  const keys = await store(provider, dataset, call);
  const answers: Answer[] = [];
  for (const { question, user } of dataset.questions) {
    if (!provider.search) throw new Error(`Provider "${provider.name}" has no search.`);
    const hits = await provider.search(
      { user_id: user, text: question, tags: [], within: null, max_bytes: 1e9, limit: LIMIT },
      call,
    );
    answers.push(hits.map(({ memory, score }) => ({ key: keys.get(memory.id) as string, score })));
  }
  return answers;
}

/** Equal scores are ordered by age, so every fact gets a different millisecond: ids are not comparable across providers. */
async function store(provider: Store, { facts }: Dataset, call: Call): Promise<Map<string, string>> {
  if (!provider.add) throw new Error(`Provider "${provider.name}" has no add.`);
  const keys = new Map<string, string>();
  for (const { key, user, content } of facts) {
    const { id, created_at } = await provider.add({ input: newMemory(user, content) }, call);
    keys.set(id, key);
    while (Date.now() <= Date.parse(created_at)) await setImmediate();
  }
  return keys;
}

const newMemory = (user_id: string, content: string): NewMemory => ({
  content,
  user_id,
  scope: null,
  tags: [],
  source: null,
  confidence: null,
  valid_from: null,
  valid_to: null,
  supersedes: [],
  extensions: {},
});
