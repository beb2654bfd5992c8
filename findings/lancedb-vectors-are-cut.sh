#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm) and lancedb 0.40.0 (PyPI), seen 2026-11-27.
# Expect: a vector of another length than its column is refused. (guess: refused, 90 %)
# Happens: in Node a longer one is cut to the length of the column and a shorter one is filled with null, and both are
# searched as if they were whole. Only a query of another length is an error. The Python library refuses them.
# Who is bitten: a change of the embedding model: old and new vectors mix without a word, and results get worse.
# Do: check the length before each add.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv lancedb==0.40.0
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @lancedb/lancedb@0.31.0
for package in @lancedb/lancedb; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
venv/bin/python - > seen <<'PROGRAM'
import lancedb, subprocess
program = '''
import { connect } from '@lancedb/lancedb'
const notes = await (await connect('node')).createTable('notes', [{ id: 'right', vector: [1, 0, 0, 0] }])
for (const [id, vector] of [['longer', [1, 2, 3, 4, 5, 6]], ['shorter', [1, 2]]]) {
  await notes.add([{ id, vector }])
  console.log('Node', id, [...(await notes.query().where(`id = '${id}'`).toArray())[0].vector])
}
await notes.search([1, 2, 3, 4, 5, 6]).toArray().then(() => console.log('Node query: answered'), () => console.log('Node query: refused'))
'''
print(subprocess.run(['node', '--input-type=module', '-e', program], check=True, capture_output=True, text=True).stdout, end='')
notes = lancedb.connect('python').create_table('notes', [{'id': 'right', 'vector': [1.0, 0.0, 0.0, 0.0]}])
for id, vector in (('longer', [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ('shorter', [1.0, 2.0])):
    try:
        notes.add([{'id': id, 'vector': vector}])
        print('Python', id, notes.search().where(f"id = '{id}'").to_list()[0]['vector'])
    except Exception as error:
        print('Python', id, 'refused')
PROGRAM
cat seen
diff seen - <<'EXPECTED'
Node longer [ 1, 2, 3, 4 ]
Node shorter [ 1, 2, null, null ]
Node query: refused
Python longer refused
Python shorter refused
EXPECTED
