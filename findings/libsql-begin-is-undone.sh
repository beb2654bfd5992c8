#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm), seen 2026-11-27.
# Expect: of a file and with `concurrency: 1`, there is one connection, so BEGIN through `execute` begins a transaction there, as with
# better-sqlite3: what follows is in it until COMMIT or ROLLBACK. (guess: yes, 80 %; the probe that was built on it measured nothing)
# Happens: BEGIN succeeds, and is rolled back without a word when `execute` returns. Each statement after it is committed by itself, and stays.
# Only the ROLLBACK at the end fails. What an `executeMultiple` leaves open is undone too, with what was inserted in it.
# Who is bitten: code and migrations that send BEGIN, COMMIT and ROLLBACK as SQL, as for other clients of SQLite.
# Do: `batch(statements, 'write')`, or `transaction('write')`, whose statements go through what it returns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { createClient } from '@libsql/client'
const db = createClient({ url: 'file:notes.db', concurrency: 1 })
const run = async (sql, by = db) => { try { await by.execute(sql); return 'done' } catch (error) { return error.message } }
const ids = async () => (await db.execute('select id from notes order by id')).rows.map(({ id }) => id).join()
await run('create table notes (id text primary key)')
console.log('begin:', await run('begin immediate'))
console.log('insert:', await run("insert into notes values ('a')"))
console.log('rollback:', await run('rollback'))
console.log('kept:', await ids())
await db.executeMultiple("begin immediate; insert into notes values ('b')")
console.log('after begin and insert in one call:', await ids())
const transaction = await db.transaction('write')
await run("insert into notes values ('c')", transaction)
await transaction.rollback()
console.log('after a rollback of transaction():', await ids())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
begin: done
insert: done
rollback: SQLITE_ERROR: cannot rollback - no transaction is active
kept: a
after begin and insert in one call: a
after a rollback of transaction(): a
EXPECTED
