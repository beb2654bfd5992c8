#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm), lancedb 0.40.0 (PyPI), seen 2026-11-28.
# Expect: `update` takes every vector that `add` takes, and an object with fewer keys is refused or keeps the others.
# (guess: the vector is taken, 90 %; the object is an error, 70 %)
# Happens: the vector becomes SQL, and its first number decides the type of all: [0.5, 0] is stored, [0, 0.5] is refused as "Expected: Int64, got: Float64".
# named_struct with one of two keys is taken, and the other key becomes null without a word.
# Who is bitten: vectors that begin with exactly 0 or 1 (binary, sparse, cut or normalised small ones): an update that fails for some rows only.
# Do: mergeInsert, which takes vectors as they are; or write every number with a point (`0.0`) in valuesSql; name all keys of an object.
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
const notes = await (await connect('node')).createTable('notes', [{ id: 'a', vector: [0, 0.5], about: { topic: 'food', year: 1 } }])
const look = async label => { const [row] = await notes.query().toArray(); console.log('Node', label, [...row.vector].join(' '), JSON.stringify(row.about.toJSON())) }
const attempt = (label, change) => notes.update(change).then(() => look(label), error => console.log('Node', label, error.message.match(/Expected: \w+, got: \w+/)[0]))
await attempt('values [0.5, 0]:', { values: { vector: [0.5, 0] } })
await attempt('values [0, 0.5]:', { values: { vector: [0, 0.5] } })
await attempt('valuesSql [0, 0.5]:', { valuesSql: { vector: '[0, 0.5]' } })
await attempt('valuesSql [0.0, 0.5]:', { valuesSql: { vector: '[0.0, 0.5]' } })
await attempt('one of two keys:', { valuesSql: { about: "named_struct('year', 9)" } })
await notes.mergeInsert('id').whenMatchedUpdateAll().execute([{ id: 'a', vector: [0, 0.25], about: { topic: 'food', year: 2 } }])
await look('mergeInsert [0, 0.25]:')
PROGRAM
node program.mjs > seen
venv/bin/python - >> seen <<'PROGRAM'
import lancedb
print('lancedb', lancedb.__version__)
notes = lancedb.connect('python').create_table('notes', [{'id': 'a', 'vector': [0, 0.5], 'about': {'topic': 'food', 'year': 1}}])
for values in ({'vector': [0.5, 0]}, {'vector': [0, 0.5]}, {'vector': [0.0, 0.5]}):
    try: notes.update(values=values); print('Python', values, notes.to_arrow().to_pylist()[0]['vector'])
    except Exception as error: print('Python', values, type(error).__name__)
notes.update(values_sql={'about': "named_struct('year', 9)"})
print('Python one of two keys:', notes.to_arrow().to_pylist()[0]['about'])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
@lancedb/lancedb 0.31.0
Node values [0.5, 0]: 0.5 0 {"topic":"food","year":1}
Node values [0, 0.5]: Expected: Int64, got: Float64
Node valuesSql [0, 0.5]: Expected: Int64, got: Float64
Node valuesSql [0.0, 0.5]: 0 0.5 {"topic":"food","year":1}
Node one of two keys: 0 0.5 {"topic":null,"year":9}
Node mergeInsert [0, 0.25]: 0 0.25 {"topic":"food","year":2}
lancedb 0.40.0
Python {'vector': [0.5, 0]} [0.5, 0.0]
Python {'vector': [0, 0.5]} ValueError
Python {'vector': [0.0, 0.5]} [0.0, 0.5]
Python one of two keys: {'topic': None, 'year': 9}
EXPECTED
