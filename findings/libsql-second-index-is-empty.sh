#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm), seen 2026-11-27.
# Expect: a CREATE INDEX that failed leaves nothing behind; once the bad row is gone, it indexes all rows.
# (guess: yes, 95 %)
# Happens: the first CREATE INDEX fails on a vector of another length, as it should, but leaves its inner tables. The second
# one succeeds and indexes none of the rows that exist: vector_top_k finds nothing, then only rows written later.
# Who is bitten: whoever adds a vector index to a table with mixed lengths, cleans up and tries again.
# Do: after a failure use another index name, or drop the inner tables; compare the index with the table's count.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { createClient } from '@libsql/client'
const db = createClient({ url: 'file:notes.db' })
const run = async sql => { try { return (await db.execute(sql)).rows.map(row => row[0]) } catch (error) { return error.message } }
await run('create table notes (id text primary key, v F32_BLOB(3))')
await run("insert into notes values ('a', vector32('[1,0,0]')), ('b', vector32('[0,1,0]')), ('short', vector32('[1,0]'))")
console.log('first:', await run('create index by_v on notes (libsql_vector_idx(v))'))
await run("delete from notes where id = 'short'")
console.log('left behind:', await run("select name from sqlite_master where name like 'by_v%'"))
console.log('second:', await run('create index by_v on notes (libsql_vector_idx(v))'))
const search = name => run(`select notes.id from vector_top_k('${name}', vector32('[1,0,0]'), 5) as near join notes on notes.rowid = near.id`)
console.log('found:', await search('by_v'))
await run("insert into notes values ('c', vector32('[1,0,0]'))")
console.log('found after one more row:', await search('by_v'))
console.log('another name:', await run('create index other on notes (libsql_vector_idx(v))'), (await search('other')).sort())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
first: SQLITE_ERROR: vector index(insert): dimensions are different: 2 != 3
left behind: [ 'by_v_shadow', 'by_v_shadow_idx' ]
second: []
found: []
found after one more row: [ 'c' ]
another name: [] [ 'a', 'b', 'c' ]
EXPECTED
