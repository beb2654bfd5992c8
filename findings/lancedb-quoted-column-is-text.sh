#!/usr/bin/env bash
# @lancedb/lancedb 0.31.0 (npm) and lancedb 0.40.0 (PyPI), seen 2026-11-27.
# Expect: double quotes name a column in a filter, as in SQL and DataFusion, on which LanceDB stands. (guess: yes, 55 %)
# Happens: in 0.40 they do. In 0.31, the newest for Node 20, they make a text: `"userId" = 'u1'` compares the word userId with
# u1, matches no row and raises nothing, and `"userId" != 'u1'` matches every row. Without quotes, case does not matter.
# Who is bitten: anybody whose query builder quotes names; a delete with != then takes the whole table.
# Do: use backticks, and test a filter that must match.
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
const notes = await (await connect('node')).createTable('notes', [{ userId: 'u1', vector: [1, 0] }, { userId: 'u2', vector: [0, 1] }])
for (const where of [`"userId" = 'u1'`, `"userId" != 'u1'`, "`userId` = 'u1'", "userid = 'u1'"]) console.log('Node', where, await notes.countRows(where))
'''
print(subprocess.run(['node', '--input-type=module', '-e', program], check=True, capture_output=True, text=True).stdout, end='')
notes = lancedb.connect('python').create_table('notes', [{'userId': 'u1', 'vector': [1.0, 0.0]}, {'userId': 'u2', 'vector': [0.0, 1.0]}])
for where in ('"userId" = \'u1\'', '"userId" != \'u1\'', "`userId` = 'u1'", "userid = 'u1'"):
    print('Python', where, notes.count_rows(where))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
Node "userId" = 'u1' 0
Node "userId" != 'u1' 2
Node `userId` = 'u1' 1
Node userid = 'u1' 1
Python "userId" = 'u1' 1
Python "userId" != 'u1' 1
Python `userId` = 'u1' 1
Python userid = 'u1' 1
EXPECTED
