#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm), seen 2026-11-27.
# Expect: the number 1, bound to a TEXT column, is stored as '1', as other SQLite drivers do it for whole numbers.
# (guess: integers are bound as integers, 70 %)
# Happens: every JavaScript number is bound as a REAL. A TEXT column holds '1.0', a time in milliseconds
# '1732700000000.0', json_object makes {"n":1.0}, and `where t = '1'` finds nothing. A BigInt is bound as an integer.
# Who is bitten: text columns filled with ids, years or times; JSON that another program reads with a strict integer type.
# Do: String(n) for text columns, BigInt(n) where the type matters, INTEGER columns otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { createClient } from '@libsql/client'
const db = createClient({ url: 'file:notes.db' })
const run = async (sql, args = []) => (await db.execute({ sql, args })).rows.map(row => row[0])
await run('create table notes (id text, free, whole integer)')
for (const value of [1, 1732700000000, 1n]) await run('insert into notes values (?, ?, ?)', [value, value, value])
console.log('text column:', await run('select id from notes'))
console.log('column without a type:', await run('select typeof(free) from notes'))
console.log('integer column:', await run('select typeof(whole) from notes'))
console.log("where id = '1':", (await run("select id from notes where id = '1'")).length)
console.log('JSON:', await run("select json_object('n', ?)", [1]), await run("select json_object('n', ?)", [1n]))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
text column: [ '1.0', '1732700000000.0', '1' ]
column without a type: [ 'real', 'real', 'integer' ]
integer column: [ 'integer', 'integer', 'integer' ]
where id = '1': 1
JSON: [ '{"n":1.0}' ] [ '{"n":1}' ]
EXPECTED
