#!/usr/bin/env bash
# @electric-sql/pglite-socket 0.2.17 with @electric-sql/pglite 0.5.14 (npm), seen 2026-11-27.
# Expect: each connection is a session of its own, as `maxConnections` lets one think. (guess:
# settings are shared, 70 %; names of prepared statements are shared, 60 %; an open transaction holds the others back, 55 %)
# Happens: all connections are one session. A prepared statement of one fails in another with "already exists", also after the first has
# closed; `set search_path` moves everybody; the process id is the same, so an advisory lock is given to two. Any user and
# database name is accepted, and is postgres. A transaction does hold the others back, and is rolled back when its client leaves.
# Who is bitten: tests of migrations (locks), of pools, and psycopg, which prepares after five runs ("_pg3_0 already exists").
# Do: one client at a time, no named statements (prepare_threshold=None), a real server for tests of locks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 pg@8.23.1
for package in @electric-sql/pglite @electric-sql/pglite-socket; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import pg from 'pg'
const server = new PGLiteSocketServer({ db: await PGlite.create(), port: 0, maxConnections: 5 })
await server.start()
const connect = async name => {
  const client = new pg.Client({ connectionString: `postgres://${name}@${server.getServerConn()}/${name}` })
  await client.connect()
  return client
}
const ask = async (client, query) => Object.values((await client.query(query).catch(error => ({ rows: [{ error: error.message }] }))).rows[0])[0]
const ana = await connect('ana'), ben = await connect('ben')
console.log('ana prepares', await ask(ana, { name: 'one', text: 'select 1' }))
console.log('ben prepares', await ask(ben, { name: 'one', text: 'select 2' }))
await ana.query('set search_path = elsewhere')
console.log('search_path of ben:', await ask(ben, 'show search_path'))
console.log('one process:', await ask(ana, 'select pg_backend_pid()') === await ask(ben, 'select pg_backend_pid()'))
console.log('lock for ana:', await ask(ana, 'select pg_try_advisory_lock(1)'), 'and ben:', await ask(ben, 'select pg_try_advisory_lock(1)'))
console.log('ben is', await ask(ben, 'select current_user'), 'in', await ask(ben, 'select current_database()'))
await ana.query('create table public.notes (n int)')
await ana.query('begin; insert into public.notes values (1)')
await ana.end()
console.log('rows after ana left in a transaction:', await ask(ben, 'select count(*)::int from public.notes'))
console.log('a new client prepares', await ask(await connect('eva'), { name: 'one', text: 'select 3' }))
process.exit(0)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
ana prepares 1
ben prepares prepared statement "one" already exists
search_path of ben: elsewhere
one process: true
lock for ana: true and ben: true
ben is postgres in postgres
rows after ana left in a transaction: 0
a new client prepares prepared statement "one" already exists
EXPECTED
