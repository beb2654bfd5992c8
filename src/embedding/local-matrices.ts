/*
 * Rows and columns of a tile, and what the length of a sum is a multiple of. scripts/make-matmul.js makes the kernel for them, of what is
 * built: knip sees no import.
 */
/** @public */
export const ROWS = 4;
/** @public */
export const COLUMNS = 16;
/** @public */
export const DEPTH = 4;

/** TypeScript declares it for browsers only. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer };
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
  validate(bytes: Uint8Array): boolean;
};

/** Rows of floats in the memory. Offsets and strides count 32-bit floats. */
export interface Rows {
  readonly at: number;
  /** Distance from one row to the next. */
  readonly stride: number;
}

/** The right side of a product, packed for it. */
export interface Matrix {
  readonly at: number;
  /** Offset of what is added to every row of the product. */
  readonly bias: number;
  readonly rows: number;
  readonly columns: number;
}

/** Offsets of what each column is multiplied by after normalization, and of what is added then. */
export interface Norm {
  readonly scale: number;
  readonly shift: number;
}

/** Floats that a product of `rows` rows needs: its last tile may read and write rows behind the last. */
export const floatsOf = (rows: number, width: number): number => (rows + ROWS) * width;
export const paddedWidth = (columns: number): number => Math.ceil(columns / COLUMNS) * COLUMNS;
const paddedDepth = (rows: number): number => Math.ceil(rows / DEPTH) * DEPTH;

/** Computes on `size` floats. `wasm` are versions of the product, the fastest first; the first one that Node supports is used. */
export function openMatrices(size: number, wasm: readonly Uint8Array[]) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil((4 * size) / 65_536) });
  const floats = new Float32Array(memory.buffer);
  const supported = wasm.find((bytes) => WebAssembly.validate(bytes));
  if (!supported) throw new Error('this Node has no WebAssembly SIMD');
  const { matmul } = new WebAssembly.Instance(new WebAssembly.Module(supported), { env: { memory } }).exports as {
    matmul(...numbers: number[]): void;
  };
  const get = (at: number): number => floats[at] as number;

  return {
    floats,

    /**
     * Packs a matrix with these strides between its rows and its columns: `COLUMNS` columns at a time, row by row, and zeros
     * up to the next multiples of `DEPTH` and `COLUMNS`.
     */
    pack(from: number, [rowStride, columnStride]: readonly [number, number], { at, rows, columns }: Matrix): void {
      let to = at;
      for (let panel = 0; panel < columns; panel += COLUMNS)
        for (let row = 0; row < paddedDepth(rows); row++)
          for (let column = panel; column < panel + COLUMNS; column++) {
            floats[to] = row < rows && column < columns ? get(from + row * rowStride + column * columnStride) : 0;
            to += 1;
          }
    },

    /** `to` = `left` × `right` + bias. Writes up to `ROWS - 1` rows behind the last. */
    multiply(left: Rows, count: number, right: Matrix, to: Rows): void {
      const addresses = [left.at, left.stride, right.at, right.bias, to.at, to.stride].map((offset) => 4 * offset);
      matmul(...addresses, count, paddedDepth(right.rows), right.columns);
    },

    add(to: number, other: number, length: number): void {
      for (let i = 0; i < length; i++) floats[to + i] = get(to + i) + get(other + i);
    },

    dropNegative(at: number, length: number): void {
      for (let i = at; i < at + length; i++) floats[i] = Math.max(0, get(i));
    },

    /** Layer normalization of each row, then `scale` and `shift`. */
    normalize(from: number, [count, width]: readonly [number, number], norm: Norm, to: number): void {
      for (let row = 0; row < count * width; row += width) {
        let sum = 0;
        for (let i = 0; i < width; i++) sum += get(from + row + i);
        const mean = sum / width;
        let squares = 0;
        for (let i = 0; i < width; i++) squares += (get(from + row + i) - mean) ** 2;
        const factor = 1 / Math.sqrt(squares / width + 1e-6);
        for (let i = 0; i < width; i++)
          floats[to + row + i] = (get(from + row + i) - mean) * factor * get(norm.scale + i) + get(norm.shift + i);
      }
    },

    /** Softmax of one row, whose values are multiplied by `scale` before. */
    softmax(at: number, length: number, scale: number): void {
      let highest = Number.NEGATIVE_INFINITY;
      for (let i = at; i < at + length; i++) highest = Math.max(highest, get(i));
      let sum = 0;
      for (let i = at; i < at + length; i++) {
        floats[i] = Math.exp(scale * (get(i) - highest));
        sum += get(i);
      }
      for (let i = at; i < at + length; i++) floats[i] = get(i) / sum;
    },

    /** Replaces groups of rows with these lengths by their means, one row a group. */
    average(at: number, width: number, lengths: readonly number[]): void {
      let first = at;
      lengths.forEach((length, group) => {
        for (let i = 0; i < width; i++) {
          let sum = 0;
          for (let row = 0; row < length; row++) sum += get(first + row * width + i);
          floats[at + group * width + i] = sum / length;
        }
        first += length * width;
      });
    },
  };
}
