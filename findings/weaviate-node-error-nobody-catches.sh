#!/usr/bin/env bash
# weaviate-client 3.12.1 (npm), seen 2026-11-27.
# Expect: a call to a server that is away fails at once, with an error that try and catch see. (guess: at once, 80 %)
# Happens: with skipInitChecks the connection is "made", and the refusal of a question that nobody asked arrives as an unhandled rejection, at which Node
# ends the process unless it listens for them. The query itself is tried five times more, about 25 seconds in all, and writes each whole error to
# the console; only then it fails.
# Who is bitten: services that skip the checks so as to start before the database; requests whose callers gave up long before; logs.
# Do: listen for unhandledRejection, ask isReady before a query, and race each query with a timer of your own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 weaviate-client@3.12.1
for package in weaviate-client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
cat > program.mjs <<'PROGRAM'
import { once } from 'node:events'
import { createServer } from 'node:net'
import weaviate from 'weaviate-client'
const uncaught = []
process.on('unhandledRejection', ({ message, cause }) => uncaught.push(`${message} ${cause.code}`))
let again = 0
console.warn = (error, text) => { if (error instanceof Error && /^Attempt \d+ failed. Retrying in \d+ms/.test(text)) again++ }
const server = createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address()
await new Promise(resolve => server.close(resolve))
try {
  const client = await weaviate.connectToLocal({ host: '127.0.0.1', port, grpcPort: port, skipInitChecks: true })
  console.log('connected, ready:', await client.isReady())
  await client.collections.use('Notes').query.fetchObjects()
} catch ({ name }) {
  console.log('caught:', name, '| tried again:', again, '| nobody caught:', uncaught)
}
PROGRAM
node program.mjs >> seen
cat seen
diff seen - <<'EXPECTED'
weaviate-client 3.12.1
connected, ready: false
caught: WeaviateQueryError | tried again: 5 | nobody caught: [ 'fetch failed ECONNREFUSED' ]
EXPECTED
