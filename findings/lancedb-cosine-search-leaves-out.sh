#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm), lancedb 0.40.0 (PyPI), seen 2026-11-28.
# Expect: a search by cosine ranks a zero vector last or with the distance 1 or NaN; the rows are as many as the limit asks. (guess: returned, 60 %)
# Happens: a row with a zero vector is in no answer, whatever the limit, and a query with a zero vector has none at all, without an error. By L2 and
# the inner product it is returned. A query without a vector and countRows have it.
# Who is bitten: stores that write zeros for "no text" or "not embedded yet", as many libraries do: the row is there, and its filter never shows it in a search.
# Do: leave such rows to a query without a vector; or L2 over normalised vectors, which gives the order of the cosine.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv lancedb==0.40.0
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @lancedb/lancedb@0.31.0
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs'
import { connect } from '@lancedb/lancedb'
console.log('@lancedb/lancedb', JSON.parse(readFileSync('node_modules/@lancedb/lancedb/package.json')).version)
const notes = await (await connect('node')).createTable('notes', [{ id: 'near', vector: [1, 0.5] }, { id: 'zero', vector: [0, 0] }, { id: 'far', vector: [-1, 0] }])
const show = async (label, query) => console.log('Node', label, '|', (await query.toArray()).map(row => row.id).join(' '))
for (const metric of ['cosine', 'l2', 'dot']) await show(metric, notes.search([1, 0]).distanceType(metric).limit(9))
await show("cosine where id = 'zero'", notes.search([1, 0]).distanceType('cosine').where("id = 'zero'").limit(9))
await show('cosine, query of zeros', notes.search([0, 0]).distanceType('cosine').limit(9))
await show('no vector', notes.query())
PROGRAM
node program.mjs > seen
venv/bin/python - >> seen <<'PROGRAM'
import lancedb
print('lancedb', lancedb.__version__)
notes = lancedb.connect('python').create_table('notes', [{'id': 'near', 'vector': [1.0, 0.5]}, {'id': 'zero', 'vector': [0.0, 0.0]}, {'id': 'far', 'vector': [-1.0, 0.0]}])
for metric in ('cosine', 'l2', 'dot'): print('Python', metric, '|', *(row['id'] for row in notes.search([1.0, 0.0]).distance_type(metric).limit(9).to_list()))
print('Python cosine, query of zeros |', *(row['id'] for row in notes.search([0.0, 0.0]).distance_type('cosine').limit(9).to_list()))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
@lancedb/lancedb 0.31.0
Node cosine | near far
Node l2 | near zero far
Node dot | near zero far
Node cosine where id = 'zero' | 
Node cosine, query of zeros | 
Node no vector | near zero far
lancedb 0.40.0
Python cosine | near far
Python l2 | near zero far
Python dot | near zero far
Python cosine, query of zeros |
EXPECTED
