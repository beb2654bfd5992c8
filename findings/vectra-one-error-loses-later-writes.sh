#!/usr/bin/env bash
# vectra 0.12.3 (npm, the newest for Node 20), seen 2026-11-27.
# Expect: after insertItem refused an id that exists, the next write works as before. (guess: yes, 97 %)
# Happens: the refused insert leaves an update open. Every later write of the process goes into it and answers as if it had
# been stored, reads show the old state, and nothing reaches the file.
# Who is bitten: "insert, and on an error upsert", the usual way to add or replace.
# Do: use upsertItem only, or call cancelUpdate after an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 vectra@0.12.3
for package in vectra; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { LocalIndex } from 'vectra'
const show = async () => (await new LocalIndex('index').listItems()).map(item => `${item.id} ${item.metadata.topic}`)
const index = new LocalIndex('index')
await index.createIndex({ version: 1 })
await index.insertItem({ id: '1', vector: [1, 0], metadata: { topic: 'food' } })
await index.insertItem({ id: '1', vector: [0, 1], metadata: { topic: 'work' } }).catch(error => console.log('refused:', error.message))
const { metadata } = await index.upsertItem({ id: '1', vector: [0, 1], metadata: { topic: 'work' } })
console.log('upsert answers:', metadata.topic, 'read:', (await index.getItem('1')).metadata.topic)
await index.insertItem({ id: '2', vector: [0, 1], metadata: { topic: 'new' } })
console.log('in the file:', await show())
index.cancelUpdate()
await index.upsertItem({ id: '1', vector: [0, 1], metadata: { topic: 'work' } })
console.log('after cancelUpdate and upsert:', await show())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
refused: Item with id 1 already exists
upsert answers: work read: food
in the file: [ '1 food' ]
after cancelUpdate and upsert: [ '1 work' ]
EXPECTED
