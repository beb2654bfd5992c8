#!/usr/bin/env bash
# chromadb 1.5.9 (PyPI), seen 2026-11-27.
# Expect: without a filter, n_results = the number of records returns every record. (guess: yes, 90 %)
# Happens: with the inner product, of 2,001 records fewer than 100 come back, without an error. Cosine and L2 return all.
# Who is bitten: who chose `ip` for vectors that are not of length 1, and pages or counts through a query.
# Do: list with `get` and an offset; use `ip` only for normalised vectors, where cosine gives the same order.
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
client = chromadb.EphemeralClient()
for space in ('l2', 'cosine', 'ip'):
    notes = client.create_collection('notes-' + space, embedding_function=None, configuration={'hnsw': {'space': space}})
    notes.add(ids=['far'], embeddings=[[3, 4]])
    for i in range(20):
        notes.add(ids=[f'{i}-{j}' for j in range(100)], embeddings=[[1 + i * 0.01, j * 0.01] for j in range(100)])
    found = len(notes.query(query_embeddings=[[3, 4]], n_results=2001)['ids'][0])
    print(space, notes.count(), 'all' if found == 2001 else 'fewer than 100' if found < 100 else found)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9
l2 2001 all
cosine 2001 all
ip 2001 fewer than 100
EXPECTED
