import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Embedder } from '#contract';
import { openEmbedder } from '../../src/embedding/open.ts';
import { freshUser, openSubject, recordingLog, type Subject } from '../support/subject.ts';

/** Question → the note that answers it without sharing a word with it. */
const ANSWERS: readonly (readonly [string, string])[] = [
  ['What does she like to drink?', 'prefers coffee over tea'],
  ['Where is her home?', 'lives in a small apartment in Lisbon'],
  ['Does she own a pet?', 'has two cats'],
  ['Which job does she have?', 'works as a marine biologist'],
];

describe('search by meaning, with the bundled embedder', () => {
  let embedder: Embedder;
  let subject: Subject;
  const user_id = freshUser();
  beforeAll(async () => {
    embedder = await openEmbedder({ kind: 'local', cache_size: 1000, workers: 1 }, recordingLog());
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'vector', embedder });
    for (const [, content] of ANSWERS) await subject.client.add({ user_id, content });
  });
  afterAll(async () => {
    await subject?.close();
    await embedder?.close();
  });

  it.for(ANSWERS)('[SPEC Capabilities features.vector_search] %j finds %j', async ([q, answer]) => {
    const [first] = await subject.client.search({ user_id, q });
    expect(first?.memory.content).toBe(answer);
  });

  it('[SPEC SearchResult score] a text equal to the query scores 1', async () => {
    for (const [, q] of ANSWERS) {
      const [first] = await subject.client.search({ user_id, q });
      expect(first?.memory.content).toBe(q);
      expect(first?.score).toBeGreaterThan(0.999);
    }
  });

  it('[SPEC Memory embedding_model] names the model', async () => {
    const [first] = await subject.client.search({ user_id, q: 'coffee' });
    expect(first?.memory.embedding_model).toBe(embedder.model);
  });
});
