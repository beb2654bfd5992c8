#!/usr/bin/env bash
# @langchain/community 1.1.29, PGVectorStore (npm), on PGlite 0.5.14 with pgvector, seen 2026-11-27.
# Expect: an operator that it does not know is refused, or finds nothing; an array is compared with the stored array.
# (guess: refused, 55 %; finds nothing, 35 %)
# Happens: the condition is left out, without a word: { topic: { ne: 'x' } } finds everything, since the operator is called neq, and so do an
# array and {}. `delete` reads the same filters: one misspelt operator, or {}, deletes the whole table. `in: []` is an error of SQL, null
# finds nothing, `neq` finds documents without the key and `notIn` does not, `addDocuments` of a known id is an error.
# Who is bitten: filters brought from the Python library ($ne) or from other stores; deletes whose filter is computed.
# Do: allow only in, notIn, neq, gt, gte, lt, lte, arrayContains and plain values in your own code; delete by ids.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17 @langchain/core@1.4.0 @langchain/community@1.1.29 pg@8.23.1 --legacy-peer-deps
for package in @langchain/community; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > serve.mjs <<'PROGRAM'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
const db = await PGlite.create({ extensions: { vector } })
await db.exec('create extension vector')
const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 9 })
await server.start()
console.log(server.getServerConn())
PROGRAM
node serve.mjs > address & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until [ -s address ] || ! kill -0 $server; do sleep 0.1; done
node --input-type=module - > seen 2> errors <<'PROGRAM'
import { PGVectorStore } from '@langchain/community/vectorstores/pgvector'
import { FakeEmbeddings } from '@langchain/core/utils/testing'
import { readFileSync } from 'node:fs'
import pg from 'pg'
const pool = new pg.Pool({ connectionString: `postgres://postgres@${readFileSync('address', 'utf8').trim()}/postgres`, max: 4 })
const store = await PGVectorStore.initialize(new FakeEmbeddings(), { pool, tableName: 'notes' })
const documents = [['x', { topic: 'x', tags: ['u'] }], ['y', { topic: 'y' }], ['none', {}]].map(([pageContent, metadata]) => ({ pageContent, metadata }))
const add = () => store.addDocuments(documents)
const found = async filter => (await store.similaritySearch('q', 9, filter)).map(hit => hit.pageContent).sort().join(' ')
await add()
for (const filter of [{ topic: { ne: 'x' } }, { topic: { $ne: 'x' } }, { topic: { neq: 'x' } }, { topic: { notIn: ['x'] } }, { topic: { in: [] } }, { tags: ['v'] }, { topic: {} }, { topic: null }])
  console.log(JSON.stringify(filter), '|', await found(filter).catch(error => error.message))
for (const filter of [{ topic: { $ne: 'x' } }, {}]) {
  await store.delete({ filter })
  console.log('after delete', JSON.stringify(filter), '|', (await found()).length, 'left')
  await add()
}
process.exit(0)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
{"topic":{"ne":"x"}} | none x y
{"topic":{"$ne":"x"}} | none x y
{"topic":{"neq":"x"}} | none y
{"topic":{"notIn":["x"]}} | y
{"topic":{"in":[]}} | syntax error at or near ")"
{"tags":["v"]} | none x y
{"topic":{}} | none x y
{"topic":null} | 
after delete {"topic":{"$ne":"x"}} | 0 left
after delete {} | 0 left
EXPECTED
