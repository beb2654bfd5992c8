#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm), seen 2026-11-28.
# Expect: connecting to a folder of tables writes nothing, and `manifestEnabled: false` turns off what is said to keep a list of
# tables. (guess: nobody doubted it until the folder of another application was looked at)
# Happens: `connect` alone writes a table `__manifest` into the folder, and creates the folder if it is not there, so that a mistyped
# path is an empty database. `manifestEnabled: false` changes nothing; `namespaceClientProperties: { manifest_enabled: 'false' }`
# does, and still creates the folder.
# Who is bitten: who reads tables of others, on a disk that is read-only or with a role that may not write.
# Do: pass the property, and look for the folder first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @lancedb/lancedb@0.31.0
for package in @lancedb/lancedb; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { connect } from '@lancedb/lancedb'
const db = await connect('made')
await db.createTable('notes', [{ id: 'a', vector: [1, 0] }])
const property = { namespaceClientProperties: { manifest_enabled: 'false' } }
for (const [name, options] of Object.entries({ nothing: {}, manifestEnabled: { manifestEnabled: false }, property })) {
  mkdirSync(name)
  cpSync('made/notes.lance', `${name}/notes.lance`, { recursive: true })
  const { length } = await (await (await connect(name, options)).openTable('notes')).query().toArray()
  console.log(`${name}: ${length} row,`, readdirSync(name).join(' '))
}
await connect('absent', property)
console.log('a folder that was not there is made:', existsSync('absent'))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
nothing: 1 row, __manifest notes.lance
manifestEnabled: 1 row, __manifest notes.lance
property: 1 row, notes.lance
a folder that was not there is made: true
EXPECTED
