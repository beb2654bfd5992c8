#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm), seen 2026-11-27.
# Expect: null can be stored in every column that may be null, and reads back as null. (guess: yes, 85 %)
# Happens: a batch in which a boolean column has nothing but null is refused with an error about bitmaps ("Need at least 1
# bytes"), though the same row goes in beside one that has a value. A null struct is stored as a struct of nulls, so
# `details is null` does not find it.
# Who is bitten: single adds of a row with an unset flag: it works in tests that add several rows, and fails alone.
# Do: leave such columns out of the row, or keep flags as numbers or text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @lancedb/lancedb@0.31.0
for package in @lancedb/lancedb; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { connect } from '@lancedb/lancedb'
const db = await connect('data')
const notes = await db.createTable('notes', [{ id: 'first', vector: [1, 0], done: true, text: 'a', details: { by: 'ana' } }])
const add = async (label, rows) => {
  try { await notes.add(rows.map(row => ({ vector: [0, 1], ...row }))); console.log(label, 'added') } catch (error) { console.log(label, error.message.match(/Need at least \d+ bytes for bitmap/)?.[0] ?? error.message) }
}
await add('null boolean alone:', [{ id: 'b1', done: null }])
await add('null boolean beside true:', [{ id: 'b2', done: null }, { id: 'b3', done: true }])
await add('boolean left out:', [{ id: 'b4' }])
await add('null text alone:', [{ id: 't1', text: null }])
await add('null struct alone:', [{ id: 's1', details: null }])
const ids = async where => (await notes.query().where(where).toArray()).map(row => row.id).join(' ')
console.log('details is null:', await ids('details is null'))
console.log('details.by is null:', await ids('details.by is null'))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
null boolean alone: Need at least 1 bytes for bitmap
null boolean beside true: added
boolean left out: added
null text alone: added
null struct alone: added
details is null: b2 b3 b4 t1
details.by is null: b2 b3 b4 t1 s1
EXPECTED
