#!/usr/bin/env bash
# mem0ai 3.3.1 (npm) and 2.2.1 (PyPI), seen 2026-11-27. Nothing is sent: fetch is replaced, and Python is asked for its switch only.
# Expect: MEM0_TELEMETRY=False, as it is usually written for Python, turns telemetry off in both. (guess: in both, 75 %)
# Happens: Python takes False, FALSE, 0, no and off. JavaScript turns it off for the exact text "false" only: with every other value
# a new client sends an event.
# Who is bitten: one environment for services in both languages; companies that must not send anything.
# Do: MEM0_TELEMETRY=false, in lower case.
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
const hosts = []
globalThis.fetch = async address => {
  hosts.push(new URL(address).hostname)
  return new Response(JSON.stringify({ status: 'ok', org_id: 'o', project_id: 'p', user_email: 'ana@example.org' }), { headers: { 'content-type': 'application/json' } })
}
const { MemoryClient } = await import('mem0ai')
const client = new MemoryClient({ apiKey: 'none', host: 'http://127.0.0.1:1' })
await client.initialized
console.log(hosts.some(host => host !== '127.0.0.1') ? 'sends' : 'off')
process.exit(0)
PROGRAM
export MEM0_TELEMETRY MEM0_DIR="$folder"
for MEM0_TELEMETRY in false False FALSE 0 no off; do
  python=$(venv/bin/python -c "from mem0.memory import telemetry; print('sends' if telemetry.MEM0_TELEMETRY else 'off')" 2> errors)
  echo "MEM0_TELEMETRY=$MEM0_TELEMETRY | Python: $python | JavaScript: $(node program.mjs 2> errors | tail -1)"
done > seen
cat seen
diff seen - <<'EXPECTED'
MEM0_TELEMETRY=false | Python: off | JavaScript: off
MEM0_TELEMETRY=False | Python: off | JavaScript: sends
MEM0_TELEMETRY=FALSE | Python: off | JavaScript: sends
MEM0_TELEMETRY=0 | Python: off | JavaScript: sends
MEM0_TELEMETRY=no | Python: off | JavaScript: sends
MEM0_TELEMETRY=off | Python: off | JavaScript: sends
EXPECTED
