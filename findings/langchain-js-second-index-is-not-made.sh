#!/usr/bin/env bash
# @langchain/community 1.1.29, PGVectorStore (npm), on PGlite 0.5.14 with pgvector, seen 2026-11-27.
# Expect: createHnswIndex makes an index on the table of the store, for each table. (guess: yes, 85 %)
# Happens: the name of the index has no table in it and the statement says IF NOT EXISTS: for the second table of a schema it answers as if
# it had been made, and nothing is there. Another number of dimensions makes no difference.
# Who is bitten: one table a tenant, model or collection: only the first has an index, and the others are read whole.
# Do: pass `namespace` to createHnswIndex, one for each table, and look into pg_indexes.
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
const open = tableName => PGVectorStore.initialize(new FakeEmbeddings(), { pool, tableName })
const show = async label => console.log(label, '|', (await pool.query("select tablename || ': ' || indexname as name from pg_indexes where indexdef like '%hnsw%' order by 1")).rows.map(row => row.name).join(', '))
const first = await open('first'), second = await open('second')
await first.createHnswIndex({ dimensions: 4 }); await show('first')
await second.createHnswIndex({ dimensions: 8 }); await show('second')
await second.createHnswIndex({ dimensions: 4, namespace: 'second' }); await show('second with a namespace')
process.exit(0)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
first | first: embedding_embedding_hnsw_idx
second | first: embedding_embedding_hnsw_idx
second with a namespace | first: embedding_embedding_hnsw_idx, second: second_embedding_embedding_hnsw_idx
EXPECTED
