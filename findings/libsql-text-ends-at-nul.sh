#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm), seen 2026-11-27.
# Expect: a text with U+0000 in it comes back as it was stored. (guess: yes, 70 %; that it is refused, 25 %)
# Happens: it is stored whole, as its bytes show, but read only up to the U+0000, without a word. A blob comes back whole.
# Who is bitten: texts of chats and documents from outside, which may hold U+0000 as JSON allows it; a copy made through the client loses the rest.
# Do: store such texts as a blob, or escape U+0000, and compare length(cast(x as blob)) before a copy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { createClient } from '@libsql/client'
const db = createClient({ url: 'file:notes.db' })
await db.execute('create table notes (text text, bytes blob)')
const text = 'tea\u0000coffee'
await db.execute({ sql: 'insert into notes values (?, ?)', args: [text, new TextEncoder().encode(text)] })
const { rows: [row] } = await db.execute('select text, bytes, length(text) as characters, length(cast(text as blob)) as stored from notes')
console.log('read:', JSON.stringify(row.text), 'as a blob:', JSON.stringify(new TextDecoder().decode(row.bytes)))
console.log('length(text):', row.characters, 'bytes stored:', row.stored)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
read: "tea" as a blob: "tea\u0000coffee"
length(text): 3 bytes stored: 10
EXPECTED
