#!/usr/bin/env bash
# @zilliz/milvus2-sdk-node 3.0.6 (npm) against milvus-lite 3.2.2 (PyPI), seen 2026-11-27.
# Expect: a rejected promise for a wrong filter and a missing collection, and a refused row for 1.5 in an integer field.
# (guess: query rejects, 60 %; the fraction is refused, 75 %)
# Happens: `query` resolves with data: [] and the error in status, which reads as "no rows"; a `search` of the same missing
# collection throws a TypeError about reading 'fields' of null; 1.5 is stored as 1 (pymilvus refuses it).
# Who is bitten: `(await client.query(…)).data` is the usual way to read, and it hides every failure.
# Do: check status.code of each answer in one place, and validate numbers before you send them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv milvus-lite==3.2.2 pymilvus==3.0.2
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @zilliz/milvus2-sdk-node@3.0.6
for package in @zilliz/milvus2-sdk-node; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
venv/bin/python - > seen <<'PROGRAM'
import os, subprocess, tempfile
from importlib.metadata import version
from milvus_lite.server_manager import server_manager_instance
uri = server_manager_instance.start_and_get_uri(os.path.join(tempfile.mkdtemp(dir='.'), 'notes.db'))
print('milvus-lite', version('milvus-lite'), flush=True)
program = '''
import { MilvusClient } from '@zilliz/milvus2-sdk-node'
const client = new MilvusClient({ address: process.argv[1] })
const collection_name = 'notes'
await client.createCollection({ collection_name, fields: [{ name: 'id', data_type: 'Int64', is_primary_key: true },
  { name: 'v', data_type: 'FloatVector', dim: 2 }, { name: 'n', data_type: 'Int64' }],
  index_params: [{ field_name: 'v', index_type: 'FLAT', metric_type: 'L2' }] })
const seen = (label, call) => call.then(({ status, data }) => console.log(label, status.code, data.map(row => row.n)), error => console.log(label, error.name, error.message))
await client.insert({ collection_name, data: [{ id: 1, v: [1, 0], n: 1.5 }] })
await seen('1.5 in an integer field:', client.query({ collection_name, filter: 'n == 1', output_fields: ['n'] }))
await seen('wrong filter:', client.query({ collection_name, filter: 'n ===' }))
await seen('query of no collection:', client.query({ collection_name: 'nothing', filter: 'n == 1' }))
await seen('search of no collection:', client.search({ collection_name: 'nothing', data: [1, 0], limit: 1 }))
await client.closeConnection()
'''
subprocess.run(['node', '--input-type=module', '-e', program, uri.removeprefix('http://')], check=True)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
1.5 in an integer field: 0 [ '1' ]
wrong filter: 6 []
query of no collection: 100 []
search of no collection: TypeError Cannot read properties of null (reading 'fields')
EXPECTED
