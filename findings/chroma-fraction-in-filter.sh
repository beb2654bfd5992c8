#!/usr/bin/env bash
# chromadb 1.5.9 (PyPI), seen 2026-11-27.
# Expect: a filter with a fraction compares integers with it as numbers: 1 is less than 1.5 and not equal to it.
# (guess: integers and floats never match each other, 60 %)
# Happens: for records whose value is an integer, the fraction is cut off first. `n < 1.5` leaves out 1, `n = 1.5` finds 1.
# Who is bitten: anybody who filters prices, scores or times in seconds that were stored partly as whole numbers.
# Do: store one kind of number per key, all floats (1.0), and write whole bounds as integers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv chromadb==1.5.9
venv/bin/python - > seen <<'PROGRAM'
import chromadb
print('chromadb', chromadb.__version__)
notes = chromadb.EphemeralClient().create_collection('notes', embedding_function=None)
notes.add(ids=['zero', 'one', 'two', 'one and a half'], embeddings=[[1, 0]] * 4,
          metadatas=[{'n': 0}, {'n': 1}, {'n': 2}, {'n': 1.5}])
for where in ({'n': {'$lt': 1.5}}, {'n': 1.5}, {'n': {'$ne': 1.5}}, {'n': {'$gt': -0.5}}, {'n': {'$in': [0.5]}}):
    print(where, sorted(notes.get(where=where)['ids']))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9
{'n': {'$lt': 1.5}} ['zero']
{'n': 1.5} ['one', 'one and a half']
{'n': {'$ne': 1.5}} ['two', 'zero']
{'n': {'$gt': -0.5}} ['one', 'one and a half', 'two']
{'n': {'$in': [0.5]}} ['zero']
EXPECTED
