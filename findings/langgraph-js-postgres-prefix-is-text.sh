#!/usr/bin/env bash
# @langchain/langgraph-checkpoint-postgres 1.0.5 and @langchain/langgraph 1.7.3 (npm), on PGlite 0.5.14, seen 2026-11-27.
# Expect: search and listNamespaces take a prefix of whole labels, as InMemoryStore and the Python library do; maxDepth cuts names, as
# there. (guess: whole labels, 55 %; cuts, 80 %)
# Happens: PostgresStore compares the joined text. A search of notes/work also returns the items of notes/workshop, "note" returns both,
# and listNamespaces likewise. maxDepth: 1 leaves deeper names out.
# Who is bitten: namespaces that end in a number or a name that another begins with: a search of project 1 returns project 12.
# Do: end each namespace with a fixed label, or use ids of one length, and check the namespace of each hit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17 @langchain/core@1.4.0 @langchain/langgraph@1.7.3 @langchain/langgraph-checkpoint-postgres@1.0.5 --legacy-peer-deps
for package in @langchain/langgraph @langchain/langgraph-checkpoint-postgres; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
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
node --input-type=module - > seen <<'PROGRAM'
import { InMemoryStore } from '@langchain/langgraph'
import { PostgresStore } from '@langchain/langgraph-checkpoint-postgres/store'
import { readFileSync } from 'node:fs'
const postgres = new PostgresStore({ connectionOptions: `postgres://postgres@${readFileSync('address', 'utf8').trim()}/postgres`, schema: 'notes' })
await postgres.setup()
for (const [name, store] of Object.entries({ InMemoryStore: new InMemoryStore(), PostgresStore: postgres })) {
  for (const labels of [['notes', 'work'], ['notes', 'work', 'old'], ['notes', 'workshop'], ['tea']]) await store.put(labels, labels.join('/'), { n: 1 })
  for (const prefix of [['notes', 'work'], ['note']]) console.log(name, 'search', prefix.join('/'), '|', (await store.search(prefix)).map(hit => hit.key).sort().join(' '))
  console.log(name, 'names under notes/work |', (await store.listNamespaces({ prefix: ['notes', 'work'] })).map(labels => labels.join('/')).sort().join(' '))
  console.log(name, 'maxDepth 1 |', (await store.listNamespaces({ maxDepth: 1 })).map(labels => labels.join('/')).sort().join(' '))
}
process.exit(0)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
InMemoryStore search notes/work | notes/work notes/work/old
InMemoryStore search note | 
InMemoryStore names under notes/work | notes/work notes/work/old
InMemoryStore maxDepth 1 | notes tea
PostgresStore search notes/work | notes/work notes/work/old notes/workshop
PostgresStore search note | notes/work notes/work/old notes/workshop
PostgresStore names under notes/work | notes/work notes/work/old notes/workshop
PostgresStore maxDepth 1 | tea
EXPECTED
