#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm), seen 2026-11-27.
# Expect: an upsert by id of a batch that has the same new id twice fails, or the last one wins. (guess: an error, 50 %)
# Happens: it depends on whether the id existed. For a known id it fails ("Ambiguous merge inserts"); for a new one both
# rows go in, and from then on every upsert of that id replaces both.
# Who is bitten: batches with repeats, such as two events of one record: the key is not unique afterwards.
# Do: make a batch unique by id before mergeInsert.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @lancedb/lancedb@0.31.0
for package in @lancedb/lancedb; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { connect } from '@lancedb/lancedb'
const notes = await (await connect('data')).createTable('notes', [{ id: 'known', vector: [1, 0], text: 'a' }])
const upsert = async rows => {
  try {
    const { numInsertedRows, numUpdatedRows } = await notes.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows)
    return { numInsertedRows, numUpdatedRows }
  } catch (error) { return error.message.match(/Ambiguous merge inserts are prohibited/)?.[0] ?? error.message }
}
const twice = id => [{ id, vector: [1, 0], text: 'one' }, { id, vector: [0, 1], text: 'two' }]
console.log('known id twice:', await upsert(twice('known')))
console.log('new id twice:', await upsert(twice('new')), 'rows:', await notes.countRows("id = 'new'"))
console.log('once more, once:', await upsert([{ id: 'new', vector: [1, 0], text: 'three' }]), 'rows:', await notes.countRows("id = 'new'"))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
known id twice: Ambiguous merge inserts are prohibited
new id twice: { numInsertedRows: 2, numUpdatedRows: 0 } rows: 2
once more, once: { numInsertedRows: 0, numUpdatedRows: 2 } rows: 2
EXPECTED
