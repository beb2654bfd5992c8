// Makes the WebAssembly of the local embedder: c = a × b + bias, for 32-bit floats. matmul-fma.wasm uses fused multiply-add, a
// relaxed SIMD instruction that not every Node has.
//
// A tile of ROWS × COLUMNS values of c stays in registers. Every address counts bytes; `lda` and `ldc` are the bytes from one row
// to the next. `b` is packed: COLUMNS columns at a time, row by row. The caller pads k to a multiple of DEPTH, n to one of COLUMNS,
// and must allow reads and writes of up to ROWS - 1 rows after the last.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';
import { COLUMNS, DEPTH, ROWS } from '../dist/src/embedding/local-matrices.js';

const rows = Array.from({ length: ROWS }, (_, row) => row);
const vectors = Array.from({ length: COLUMNS / 4 }, (_, vector) => vector);
const tile = rows.flatMap((row) => vectors.map((vector) => ({ row, vector, sum: `$sum_${row}_${vector}` })));

const fma = (a, b, c) => `(f32x4.relaxed_madd ${a} ${b} ${c})`;
const multiplyThenAdd = (a, b, c) => `(f32x4.add ${c} (f32x4.mul ${a} ${b}))`;
const lines = (items, line) => items.map(line).join('\n');
/** Sets $row_1 and so on from $row_0. */
const rowPointers = (stride) =>
  lines(rows.slice(1), (row) => `(local.set $row_${row} (i32.add (local.get $row_${row - 1}) (local.get ${stride})))`);
const add = (name, value) => `(local.set ${name} (i32.add (local.get ${name}) ${value}))`;

/** One step along k: a column of a, a row of b. */
const step = (depth, multiplyAdd) => `
  ${lines(vectors, (v) => `(local.set $b_${v} (v128.load offset=${4 * COLUMNS * depth + 16 * v} (local.get $b)))`)}
  ${lines(
    tile,
    ({ row, vector, sum }) => `
    ${vector > 0 ? '' : `(local.set $a_value (v128.load32_splat offset=${4 * depth} (local.get $row_${row})))`}
    (local.set ${sum} ${multiplyAdd('(local.get $a_value)', `(local.get $b_${vector})`, `(local.get ${sum})`)})`,
  )}`;

const source = (multiplyAdd) => `(module
  (import "env" "memory" (memory 1))
  (func (export "matmul")
    (param $a i32) (param $lda i32) (param $packed i32) (param $bias i32) (param $c i32) (param $ldc i32)
    (param $m i32) (param $k i32) (param $n i32)
    (local $b i32) (local $next_panel i32) (local $row_of_a i32) (local $row_of_c i32) (local $left i32) (local $a_value v128)
    ${lines(rows, (row) => `(local $row_${row} i32)`)}
    ${lines(vectors, (vector) => `(local $b_${vector} v128)`)}
    ${lines(tile, ({ sum }) => `(local ${sum} v128)`)}
    (loop $panels
      (local.set $next_panel (i32.add (local.get $packed) (i32.mul (local.get $k) (i32.const ${4 * COLUMNS}))))
      (local.set $row_of_a (local.get $a))
      (local.set $row_of_c (local.get $c))
      (local.set $left (local.get $m))
      (loop $tiles
        ${lines(tile, ({ vector, sum }) => `(local.set ${sum} (v128.load offset=${16 * vector} (local.get $bias)))`)}
        (local.set $row_0 (local.get $row_of_a))
        ${rowPointers('$lda')}
        (local.set $b (local.get $packed))
        (loop $depth
          ${lines([...Array(DEPTH).keys()], (depth) => step(depth, multiplyAdd))}
          ${lines(rows, (row) => add(`$row_${row}`, `(i32.const ${4 * DEPTH})`))}
          ${add('$b', `(i32.const ${4 * COLUMNS * DEPTH})`)}
          (br_if $depth (i32.lt_u (local.get $b) (local.get $next_panel))))
        (local.set $row_0 (local.get $row_of_c))
        ${rowPointers('$ldc')}
        ${lines(tile, ({ row, vector, sum }) => `(v128.store offset=${16 * vector} (local.get $row_${row}) (local.get ${sum}))`)}
        ${add('$row_of_a', `(i32.mul (local.get $lda) (i32.const ${ROWS}))`)}
        ${add('$row_of_c', `(i32.mul (local.get $ldc) (i32.const ${ROWS}))`)}
        ${add('$left', `(i32.const -${ROWS})`)}
        (br_if $tiles (i32.gt_s (local.get $left) (i32.const 0))))
      (local.set $packed (local.get $next_panel))
      ${add('$bias', `(i32.const ${4 * COLUMNS})`)}
      ${add('$c', `(i32.const ${4 * COLUMNS})`)}
      ${add('$n', `(i32.const -${COLUMNS})`)}
      (br_if $panels (i32.gt_s (local.get $n) (i32.const 0))))))`;

const { parseWat } = await wabt();
mkdirSync(new URL('../dist', import.meta.url), { recursive: true });
for (const [name, multiplyAdd] of Object.entries({ 'matmul.wasm': multiplyThenAdd, 'matmul-fma.wasm': fma })) {
  const module = parseWat(name, source(multiplyAdd), { simd: true, relaxed_simd: true });
  writeFileSync(fileURLToPath(new URL(`../dist/${name}`, import.meta.url)), module.toBinary({}).buffer);
}
