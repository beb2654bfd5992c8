import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { floatsOf, type Matrix, openMatrices, paddedWidth } from './local-matrices.ts';

export const DIMENSIONS = 512;
/** The model reads no further tokens of a text. */
const MAX_TOKENS = 128;
/** Tokens of one pass: more share the reading of the weights, fewer take less memory, 12 kB each. */
const MAX_ROWS = 256;
const HEADS = 4;
const EMBEDDING = 256;
/** Width of the inner layers, and of query, key and value together. */
const WIDE = 1536;

interface Model {
  readonly weightsManifest: readonly [
    {
      /** Files that together hold the weights, 32 bits each. */
      readonly paths: readonly string[];
      readonly weights: readonly { readonly name: string; readonly shape: readonly number[] }[];
    },
  ];
}

const ENCODER = 'module/Encoder_en';
const TRANSFORMER = 'Encoder_en/KonaTransformer/Encode';

/** Reads the weights once, into the memory that computes, with space for one pass behind them. */
function readModel(modelFile: string, wasm: readonly Uint8Array[]) {
  const { paths, weights } = (JSON.parse(readFileSync(modelFile, 'utf8')) as Model).weightsManifest[0];
  let size = 0;
  const allocate = (count: number): number => {
    const at = size;
    size += Math.ceil(count / 4) * 4;
    return at;
  };
  const offsets = new Map<string, number>();
  let end = 0;
  for (const { name, shape } of weights) {
    offsets.set(name, end);
    end += shape.reduce((product, length) => product * length, 1);
  }
  allocate(end);
  const space = {
    tokens: allocate(floatsOf(MAX_ROWS, DIMENSIONS)),
    attended: allocate(floatsOf(MAX_ROWS, DIMENSIONS)),
    normed: allocate(floatsOf(MAX_ROWS, DIMENSIONS)),
    wide: allocate(floatsOf(MAX_ROWS, WIDE)),
    scores: allocate(floatsOf(MAX_TOKENS, MAX_TOKENS)),
    packed: allocate(DIMENSIONS * WIDE),
    zeros: allocate(DIMENSIONS),
  };

  const matrices = openMatrices(size, wasm);
  const { floats, pack } = matrices;
  const bytes = new Uint8Array(floats.buffer);
  let read = 0;
  for (const path of paths) {
    const part = readFileSync(join(dirname(modelFile), path));
    bytes.set(part, read);
    read += part.length;
  }

  const named = (name: string): number => {
    const at = offsets.get(name);
    if (at === undefined) throw new Error(`the model has no weights ${name}`);
    return at;
  };
  /** A matrix of the model, packed where it was read. */
  const matrix = (name: string, bias: string, [rows, columns]: readonly [number, number]): Matrix => {
    const result = { at: named(name), bias: named(bias), rows, columns };
    floats.copyWithin(space.packed, result.at, result.at + rows * columns);
    pack(space.packed, [columns, 1], result);
    return result;
  };
  const layers = [0, 1].map((index) => {
    const layer = `Layer_${index}/TransformerLayer`;
    const width = index === 0 ? EMBEDDING : DIMENSIONS;
    const constant = (name: string) => `module_apply_default/${TRANSFORMER}/${layer}/${name}/ConcatPartitions/concat`;
    const norm = (name: string) => ({
      scale: named(constant(`${name}_scale`)),
      shift: named(constant(`${name}_bias`)),
    });
    const attention = (name: string, columns: number) =>
      matrix(
        `module/${TRANSFORMER}/${layer}/MultiheadAttention/${name}/kernel/part_0`,
        constant(`MultiheadAttention/${name}/bias`),
        [width, columns],
      );
    const inner = (name: string, shape: readonly [number, number]) =>
      matrix(
        `module_apply_default/${TRANSFORMER}/TransformerStack/${layer}/FFN/${name}/Tensordot/Reshape_1`,
        constant(`FFN/${name}/bias`),
        shape,
      );
    return {
      width,
      norm: norm('layer_prepostprocess/layer_norm/layer_norm'),
      queryKeyValue: attention('qkv_transform_single', 3 * width),
      output: attention('output_transform_single', DIMENSIONS),
      /** Gives the tokens the width of what is added to them. */
      widen: index === 0 ? matrix(constant('dense/kernel'), constant('dense/bias'), [width, DIMENSIONS]) : undefined,
      innerNorm: norm('FFN/layer_prepostprocess/layer_norm/layer_norm'),
      expand: inner('conv1', [DIMENSIONS, WIDE]),
      contract: inner('conv2', [WIDE, DIMENSIONS]),
    };
  });
  const last = `${ENCODER}/hidden_layers/tanh_layer_0`;
  const final = matrix(`${last}/weights`, `${last}/bias`, [DIMENSIONS, DIMENSIONS]);
  return {
    matrices,
    space,
    layers,
    final,
    embeddings: named('module/Embeddings_en'),
    frequencies: named(
      `module_apply_default/${TRANSFORMER}/TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1`,
    ),
  };
}

/**
 * Opens Universal Sentence Encoder lite: a transformer of two layers, whose outputs are averaged over the tokens of a text.
 * Computes what the graph in the model file says, without padding texts to the same length: a text has the same vector alone and
 * among others. Returns a function from the tokens of texts, at least one each, to their raw vectors in one array.
 */
export function openEncoder(
  modelFile: string,
  wasm: readonly Uint8Array[],
): (texts: readonly (readonly number[])[]) => Float32Array {
  const { matrices, space, layers, final, embeddings, frequencies } = readModel(modelFile, wasm);
  const { floats, multiply, pack } = matrices;
  const { tokens, attended, normed, wide, scores, packed, zeros } = space;

  /** Embeddings of the tokens of a text and their positions, whose signal the graph adds to twice the embedding. */
  function lookUp(text: readonly number[], at: number): void {
    const half = EMBEDDING / 2;
    text.forEach((token, position) => {
      const from = embeddings + token * EMBEDDING;
      const to = at + position * EMBEDDING;
      for (let i = 0; i < half; i++) {
        const angle = position * (floats[frequencies + i] as number);
        floats[to + i] = 2 * (floats[from + i] as number) + Math.sin(angle);
        floats[to + half + i] = 2 * (floats[from + half + i] as number) + Math.cos(angle);
      }
    });
  }

  /** Attention of the tokens of one text to each other: from query, key and value in `wide` into `normed`. */
  function attend(first: number, length: number, width: number): void {
    const stride = 3 * width;
    const head = width / HEADS;
    const weighted = { at: scores, stride: paddedWidth(length) };
    for (let column = 0; column < width; column += head) {
      const query = wide + first * stride + column;
      const keys = { at: packed, bias: zeros, rows: head, columns: length };
      pack(query + width, [1, stride], keys);
      multiply({ at: query, stride }, length, keys, weighted);
      for (let row = 0; row < length; row++)
        matrices.softmax(scores + row * weighted.stride, length, 1 / Math.sqrt(head));
      const values = { at: packed, bias: zeros, rows: length, columns: head };
      pack(query + 2 * width, [stride, 1], values);
      multiply(weighted, length, values, { at: normed + first * width + column, stride: width });
    }
  }

  /** Vectors of texts with at most `MAX_ROWS` tokens together, in `attended`. */
  function encode(texts: readonly (readonly number[])[]): void {
    const lengths = texts.map(({ length }) => length);
    let rows = 0;
    for (const text of texts) {
      lookUp(text, tokens + rows * EMBEDDING);
      rows += text.length;
    }
    for (const layer of layers) {
      const { width } = layer;
      const narrow = { at: normed, stride: width };
      matrices.normalize(tokens, [rows, width], layer.norm, normed);
      multiply(narrow, rows, layer.queryKeyValue, { at: wide, stride: 3 * width });
      let first = 0;
      // In this order, since the product of a text may write into the first rows of the next.
      for (const length of lengths) {
        attend(first, length, width);
        first += length;
      }
      multiply(narrow, rows, layer.output, { at: attended, stride: DIMENSIONS });
      if (layer.widen) multiply({ at: tokens, stride: width }, rows, layer.widen, { at: normed, stride: DIMENSIONS });
      matrices.add(attended, layer.widen ? normed : tokens, rows * DIMENSIONS);
      matrices.normalize(attended, [rows, DIMENSIONS], layer.innerNorm, normed);
      multiply({ at: normed, stride: DIMENSIONS }, rows, layer.expand, { at: wide, stride: WIDE });
      matrices.dropNegative(wide, rows * WIDE);
      if (layer === layers.at(-1)) {
        // What follows is linear, so the average of its results is its result for the average: a sixth less to compute.
        matrices.average(wide, WIDE, lengths);
        matrices.average(attended, DIMENSIONS, lengths);
        rows = texts.length;
      }
      multiply({ at: wide, stride: WIDE }, rows, layer.contract, { at: tokens, stride: DIMENSIONS });
      matrices.add(tokens, attended, rows * DIMENSIONS);
    }
    multiply({ at: tokens, stride: DIMENSIONS }, rows, final, { at: attended, stride: DIMENSIONS });
  }

  return (texts) => {
    const vectors = new Float32Array(texts.length * DIMENSIONS);
    const readable = texts.map((text) => text.slice(0, MAX_TOKENS));
    for (let from = 0, to = 0; from < readable.length; from = to) {
      for (let rows = 0; to < readable.length; to++) {
        rows += (readable[to] as readonly number[]).length;
        if (rows > MAX_ROWS) break;
      }
      encode(readable.slice(from, to));
      const outputs = floats.subarray(attended, attended + (to - from) * DIMENSIONS);
      vectors.set(outputs.map(Math.tanh), from * DIMENSIONS);
    }
    return vectors;
  };
}
