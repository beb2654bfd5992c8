#!/usr/bin/env bash
# mem0ai 3.3.1 (npm), the vector store `memory`, its default, seen 2026-11-28. libsql stands in for better-sqlite3, which has no build in the registry.
# Expect: collectionName keeps two Memory objects apart, and reset() of one leaves the other. (guess, after a first look: 80 %; reset, 80 %)
# Happens: the store has one table without a collection in it. Both show both, of the same user, and reset() of one empties the other. Without dbPath the file is
# ~/.mem0/vector_store.db, so that all programs of an account share it. A list as a value is never found: in filters it means "one of these".
# Who is bitten: several agents or projects on one machine, tests that call reset(), and whoever filters by tags.
# Do: a dbPath for each; a store with collections; one key for each tag.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 mem0ai@3.3.1 better-sqlite3@npm:libsql@0.5.29 --legacy-peer-deps
cat > program.mjs <<'PROGRAM'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import { Memory } from 'mem0ai/oss'
console.log('mem0ai', JSON.parse(readFileSync('node_modules/mem0ai/package.json')).version)
const server = http.createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const { input } = JSON.parse(body)
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data: [input].flat().map((_, index) => ({ object: 'embedding', index, embedding: [1, 0] })) }))
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const baseURL = `http://127.0.0.1:${server.address().port}/v1`
const open = (collectionName, dbPath) => new Memory({ vectorStore: { provider: 'memory', config: { collectionName, dimension: 2, dbPath } }, disableHistory: true,
  embedder: { provider: 'openai', config: { apiKey: 'none', baseURL, model: 'none', embeddingDims: 2 } }, llm: { provider: 'openai', config: { apiKey: 'none', baseURL } } })
const work = open('work', 'notes.db'), home = open('home', 'notes.db'), apart = open('home', 'apart.db')
const show = async (label, filters = {}) => {
  for (const [name, memory] of Object.entries({ work, home, apart })) console.log(label, name, '|', (await memory.getAll({ filters: { user_id: 'ana', ...filters } })).results.map(hit => hit.memory).sort().join(', '))
}
await work.add('meeting at nine', { userId: 'ana', infer: false, metadata: { tags: ['urgent'] } })
await home.add('buy tea', { userId: 'ana', infer: false })
await apart.add('buy coffee', { userId: 'ana', infer: false })
await show('written by each:')
console.log('tags', JSON.stringify((await work.getAll({ filters: { user_id: 'ana', tags: ['urgent'] } })).results.map(hit => hit.memory)))
await home.reset()
await show('after home.reset():')
process.exit(0)
PROGRAM
MEM0_TELEMETRY=false MEM0_DIR="$folder" HOME="$folder" node program.mjs > seen 2> errors || cat errors
cat seen
diff seen - <<'EXPECTED'
mem0ai 3.3.1
written by each: work | buy tea, meeting at nine
written by each: home | buy tea, meeting at nine
written by each: apart | buy coffee
tags []
after home.reset(): work | 
after home.reset(): home | 
after home.reset(): apart | buy coffee
EXPECTED
