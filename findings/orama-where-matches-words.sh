#!/usr/bin/env bash
# @orama/orama 3.1.18 (npm), seen 2026-11-27.
# Expect: `where` on a string property compares the value, an empty list of it finds nothing, and update keeps the id.
# (guess: equality, 60 %; the id stays, 80 %)
# Happens: `where` compares words: 'New York' finds "York" and "new" too, since one common word is enough, and letters' case does not
# matter. `update` of a known id gives the record a new id unless the new document has the old one in it.
# Who is bitten: filters by user or project whose names share a word: one sees the records of the other. Tables that keep ids.
# Do: declare keys as `enum` (exact), and use upsert, or pass the id in the new document and check the returned one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @orama/orama@3.1.18
for package in @orama/orama; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { create, insertMultiple, search, update, upsert } from '@orama/orama'
const db = create({ schema: { text: 'string', place: 'string', key: 'enum' } })
const places = { a: 'New York', b: 'York', c: 'new' }
await insertMultiple(db, Object.entries(places).map(([id, place]) => ({ id, text: 'coffee', place, key: place })))
const ids = async (name, where) => console.log(name, (await search(db, { term: 'coffee', where })).hits.map(hit => hit.id).sort().join(' '))
await ids('place New York:', { place: 'New York' })
await ids('place NEW:', { place: 'NEW' })
await ids('place Yor:', { place: 'Yor' })
await ids('key eq New York:', { key: { eq: 'New York' } })
await ids('key eq NEW:', { key: { eq: 'NEW' } })
const known = ['a', 'b', 'c']
const label = id => known.includes(id) ? id : 'another id'
console.log('update without the id in it:', label(await update(db, 'a', { text: 'tea' })))
console.log('update with the id in it:', label(await update(db, 'b', { id: 'b', text: 'tea' })))
console.log('upsert:', label(await upsert(db, { id: 'c', text: 'tea' })))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
place New York: a b c
place NEW: a c
place Yor: 
key eq New York: a
key eq NEW: 
update without the id in it: another id
update with the id in it: b
upsert: c
EXPECTED
