#!/usr/bin/env bash
# lancedb 0.40.0 (PyPI), seen 2026-11-27.
# Expect: a row whose object lacks a key is taken, the key reads as null, and filters by the object go on to work. (guess: the add raises, 50 %)
# Happens: it is taken and reads as null. From then on every search and every list with a filter on any key of that object raises, also for
# rows from before, though counting with the same filter works. optimize() mends it, until the next such row.
# Who is bitten: `metadata` of LangChain and LlamaIndex is such an object: one document without a key stops all searches of a user.
# Do: write every key in every row, null where there is nothing, or optimize after each add.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv lancedb==0.40.0
venv/bin/python - > seen <<'PROGRAM'
from importlib.metadata import version
import lancedb
print('lancedb', version('lancedb'))
row = lambda id, metadata: {'id': id, 'vector': [1.0, 0.0], 'metadata': metadata}
table = lancedb.connect('data').create_table('notes', [row('tea', {'user': 'ana', 'topic': 'food'})])
def show(when):
    for name, query in {'search': table.search([1.0, 0.0]), 'list': table.search()}.items():
        try:
            print(when, '|', name, sorted(found['id'] for found in query.where("metadata.user = 'ana'").to_list()))
        except ValueError as error:
            print(when, '|', name, error)
    print(when, '| count', table.count_rows("metadata.user = 'ana'"))
show('at first')
table.add([row('milk', {'user': 'ana'})])
show('after a row without topic')
print('without a filter', sorted((found['id'], found['metadata']['topic']) for found in table.search().to_list()))
table.optimize()
show('after optimize')
PROGRAM
cat seen
diff seen - <<'EXPECTED'
lancedb 0.40.0
at first | search ['tea']
at first | list ['tea']
at first | count 1
after a row without topic | search Invalid input, projection supplied fewer column indices than its fields require (ran out at field 'metadata')
after a row without topic | list Invalid input, projection supplied fewer column indices than its fields require (ran out at field 'metadata')
after a row without topic | count 2
without a filter [('milk', None), ('tea', 'food')]
after optimize | search ['milk', 'tea']
after optimize | list ['milk', 'tea']
after optimize | count 2
EXPECTED
