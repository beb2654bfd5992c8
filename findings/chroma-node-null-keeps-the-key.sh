#!/usr/bin/env bash
# chromadb 3.5.0 (npm) against the server of chromadb 1.5.9 (PyPI), seen 2026-11-28.
# Expect: `update` with null for a key of the metadata removes the key, as None does in Python and as its type allows. (guess: yes, 75 %)
# Happens: the client for Node leaves the key out of what it sends, so the old value stays, and nothing says so. Python's None removes it.
# Who is bitten: a key that stands for a state ("draft", "expires") cannot be taken away from Node, and filters go on finding it.
# Do: delete the record and add it again; or send the null over HTTP.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv chromadb==1.5.9
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 chromadb@3.5.0
port=$(venv/bin/python -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
venv/bin/chroma run --host 127.0.0.1 --port "$port" --path data > log 2>&1 & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null || ! kill -0 $server; do sleep 0.1; done
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs'
import { ChromaClient } from 'chromadb'
const notes = await new ChromaClient({ host: '127.0.0.1', port: Number(process.argv[2]) }).getCollection({ name: 'notes' })
console.log('chromadb', JSON.parse(readFileSync('node_modules/chromadb/package.json')).version, '(npm)')
await notes.update({ ids: ['1'], metadatas: [{ draft: null, topic: 'work' }] })
const keys = Object.keys((await notes.get({ ids: ['1'] })).metadatas[0]).sort()
console.log('Node, draft: null:', keys.join(' '), '| found by draft:', (await notes.get({ where: { draft: true } })).ids.length)
PROGRAM
cat > program.py <<'PROGRAM'
import subprocess, sys, chromadb
client = chromadb.HttpClient(host='127.0.0.1', port=int(sys.argv[1]))
print('chromadb', chromadb.__version__, '(PyPI)', flush=True)
notes = client.create_collection('notes', embedding_function=None)
notes.add(ids=['1'], embeddings=[[1.0, 0.0]], metadatas=[{'draft': True, 'topic': 'food'}])
subprocess.run(['node', 'program.mjs', sys.argv[1]], check=True)
notes.update(ids=['1'], metadatas=[{'draft': None, 'topic': 'work'}])
print('Python, draft: None:', *sorted(notes.get(ids=['1'])['metadatas'][0]), '| found by draft:', len(notes.get(where={'draft': True})['ids']))
PROGRAM
venv/bin/python program.py "$port" > seen
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9 (PyPI)
chromadb 3.5.0 (npm)
Node, draft: null: draft topic | found by draft: 1
Python, draft: None: topic | found by draft: 0
EXPECTED
