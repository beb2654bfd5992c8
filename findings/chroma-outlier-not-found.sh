#!/usr/bin/env bash
# chromadb 1.5.9 (PyPI), seen 2026-11-27.
# Expect: a record is found by its own vector, the more so among only 2,001 records. (guess: yes, 95 %)
# Happens: the first record lies far from 2,000 later ones. The index cannot reach it: the query with exactly its vector
# returns another record at a squared distance of 12.3. Asked for all 2,001, it is there. Raising nothing, warning nothing.
# Who is bitten: stores in which most vectors are alike, such as one conversation or one template with small changes.
# Do: ask for more than you need and sort by distance, or compare with an exact search; do not take "not found" as "absent".
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
notes.add(ids=['far'], embeddings=[[3, 4]])
for i in range(20):
    notes.add(ids=[f'{i}-{j}' for j in range(100)], embeddings=[[1 + i * 0.01, j * 0.01] for j in range(100)])
print('records', notes.count())
near = notes.query(query_embeddings=[[3, 4]], n_results=1)
print('nearest to its own vector is itself:', near['ids'][0] == ['far'], round(near['distances'][0][0], 2))
everything = notes.query(query_embeddings=[[3, 4]], n_results=2001)
print('first of all records:', everything['ids'][0][0], everything['distances'][0][0])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9
records 2001
nearest to its own vector is itself: False 12.34
first of all records: far 0.0
EXPECTED
