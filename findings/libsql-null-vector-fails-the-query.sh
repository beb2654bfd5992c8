#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm), seen 2026-11-27.
# Expect: SQL functions give NULL for NULL: a row without a vector gets the distance NULL. (guess: yes, 85 %)
# Happens: vector_extract, vector_distance_cos and vector_distance_l2 fail the whole statement, so one row that has no
# vector yet makes every exact search and every export fail. A vector of zeros does give NULL, and sorts first.
# Who is bitten: tables that are embedded later, in the background.
# Do: add `where v is not null` to each statement that names the vector, and `order by distance is null, distance`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { createClient } from '@libsql/client'
const db = createClient({ url: 'file:notes.db' })
const run = async sql => { try { return (await db.execute(sql)).rows.map(row => Array.from(row).join(' ')) } catch (error) { return error.message } }
await run('create table notes (id text primary key, v F32_BLOB(2))')
await run("insert into notes values ('near', vector32('[1,0]')), ('zeros', vector32('[0,0]')), ('later', null)")
const distance = "vector_distance_cos(v, vector32('[1,0]'))"
console.log('distance:', await run(`select id, ${distance} from notes`))
console.log('export:', await run('select id, vector_extract(v) from notes'))
console.log('without null:', await run(`select id, ${distance} as d from notes where v is not null order by d`))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
distance: SQLITE_ERROR: vector: unexpected value type: got NULL, expected TEXT or BLOB
export: SQLITE_ERROR: vector: unexpected value type: got NULL, expected TEXT or BLOB
without null: [ 'zeros ', 'near 0' ]
EXPECTED
