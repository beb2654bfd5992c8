#!/usr/bin/env bash
# mem0ai 2.2.1 (PyPI) and 3.3.1 (npm), clients of mem0's platform, against a stand-in on loopback, seen 2026-11-27.
# Expect: a delete of all memories of a user whose id is missing is refused by the client. (guess: refused, 55 %)
# Happens: a user that is None, null or undefined is left out, and what is sent is `DELETE /v1/memories/` without any condition: all memories
# of the project, as far as the client is concerned. Searching refuses a user beside `filters`, with a hint; deleting does not look.
# Names of options in camel case become snake case in JavaScript, keys inside `filters` do not, so { userId } is sent as it is.
# Who is bitten: deletes for a user id that a form or a session did not have; servers that speak this protocol.
# Do: check the id before the call; a server must refuse such a request.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv mem0ai==2.2.1
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 mem0ai@3.3.1 --legacy-peer-deps
for package in mem0ai; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > program.mjs <<'PROGRAM'
import http from 'node:http'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { MemoryClient } from 'mem0ai'
let asked = []
const server = http.createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  if (!request.url.includes('ping')) asked.push(`${request.method} ${request.url} ${body && JSON.stringify(JSON.parse(body).filters)}`.trim())
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ status: 'ok', message: 'done', org_id: 'o', project_id: 'p', user_email: 'ana@example.org' }))
}).listen(0, '127.0.0.1', async () => {
  const host = `http://127.0.0.1:${server.address().port}`
  const client = new MemoryClient({ apiKey: 'none', host })
  await client.ping()
  for (const [label, call] of [
    ['deleteAll({ userId: "ana" })', () => client.deleteAll({ userId: 'ana' })],
    ['deleteAll({ userId: undefined })', () => client.deleteAll({ userId: undefined })],
    ['deleteAll({ userId: null })', () => client.deleteAll({ userId: null })],
    ['search("tea", { userId })', () => client.search('tea', { userId: 'ana' })],
    ['search("tea", { filters: { userId } })', () => client.search('tea', { filters: { userId: 'ana' } })],
  ]) {
    asked = []
    const failed = await call().then(() => '', error => error.message.split('.')[0])
    console.log(label, '|', failed || asked.join(' '))
  }
  asked = []
  await once(spawn('venv/bin/python', ['-c', `from mem0 import MemoryClient\nMemoryClient(api_key='none', host='${host}').delete_all(user_id=None)`], { stdio: 'ignore' }), 'exit')
  console.log('Python: delete_all(user_id=None) |', asked.join(' '))
  process.exit(0)
})
PROGRAM
MEM0_TELEMETRY=false MEM0_DIR="$folder" node program.mjs > seen 2> errors
cat seen
diff seen - <<'EXPECTED'
deleteAll({ userId: "ana" }) | DELETE /v1/memories/?user_id=ana
deleteAll({ userId: undefined }) | DELETE /v1/memories/
deleteAll({ userId: null }) | DELETE /v1/memories/
search("tea", { userId }) | Top-level entity parameters [userId] are not supported in search()
search("tea", { filters: { userId } }) | POST /v3/memories/search/ {"userId":"ana"}
Python: delete_all(user_id=None) | DELETE /v1/memories/
EXPECTED
