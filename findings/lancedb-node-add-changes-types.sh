#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm), seen 2026-11-27.
# Expect: a value of another type than its column is an error, as an unknown column is. (guess: an error, 75 %)
# Happens: it is changed or dropped: text in a number column becomes NaN, which `n > 1000` finds; text in a list column becomes the list of
# its letters; a number in a text column becomes text. In createTable the first row decides for the later ones.
# Who is bitten: metadata that people write by hand (`tags: "food"` for `tags: ["food"]`).
# Do: check types before `add`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @lancedb/lancedb@0.31.0
for package in @lancedb/lancedb; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { connect } from '@lancedb/lancedb'
const db = await connect('data')
const notes = await db.createTable('notes', [{ id: 'first', vector: [1, 0], n: 1, text: 'a', tags: ['food', 'tea'] }])
const add = async row => {
  try {
    await notes.add([{ vector: [0, 1], ...row }])
    const read = (await notes.query().where(`id = '${row.id}'`).toArray())[0]
    console.log(row.id + ':', { n: read.n, text: read.text, tags: read.tags && [...read.tags].join(' ') })
  } catch (error) { console.log(row.id, error.message.split('\n')[0]) }
}
await add({ id: 'text in a number column', n: 'seven' })
await add({ id: 'text in a list column', tags: 'food' })
await add({ id: 'number in a text column', text: 7 })
await add({ id: 'unknown column', other: 1 })
console.log('n > 1000:', (await notes.query().where('n > 1000').toArray()).map(row => row.id))
const mixed = await db.createTable('mixed', [{ id: 1, value: 1 }, { id: 2, value: 'two' }])
console.log('createTable with 1 and "two":', (await mixed.query().toArray()).map(row => row.value))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
text in a number column: { n: NaN, text: null, tags: null }
text in a list column: { n: null, text: null, tags: 'f o o d' }
number in a text column: { n: null, text: '7', tags: null }
unknown column Found field not in schema: other at row 0
n > 1000: [ 'text in a number column' ]
createTable with 1 and "two": [ 1, NaN ]
EXPECTED
