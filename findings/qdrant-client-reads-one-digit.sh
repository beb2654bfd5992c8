#!/usr/bin/env bash
# @qdrant/js-client-rest 1.18.0 (npm), seen 2026-11-27.
# Expect: the error of a 429 has the seconds of the header Retry-After. (guess: yes, 95 %)
# Happens: the client reads the first digit alone: 12 seconds become 1, 30 become 3, 120 become 1.
# Who is bitten: a program that waits as long as the error says asks too early, and is refused again.
# Do: read the header of the answer itself, or wait longer after each refusal.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @qdrant/js-client-rest@1.18.0
for package in @qdrant/js-client-rest; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { createServer } from 'node:http'
import { QdrantClient } from '@qdrant/js-client-rest'
let seconds
const server = createServer((request, response) => {
  response.writeHead(429, { 'content-type': 'application/json', 'retry-after': seconds })
  response.end('{"status":{"error":"too many requests"},"time":0}')
})
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const client = new QdrantClient({ url: `http://127.0.0.1:${server.address().port}`, checkCompatibility: false })
for (seconds of ['5', '12', '30', '120']) {
  const error = await client.getCollections().catch(error => error)
  console.log(`header ${seconds}: ${error.name}, retry_after ${error.retry_after}`)
}
server.close()
server.closeAllConnections()
PROGRAM
cat seen
diff seen - <<'EXPECTED'
header 5: QdrantClientResourceExhaustedError, retry_after 5
header 12: QdrantClientResourceExhaustedError, retry_after 1
header 30: QdrantClientResourceExhaustedError, retry_after 3
header 120: QdrantClientResourceExhaustedError, retry_after 1
EXPECTED
