#!/usr/bin/env bash
# chromadb 1.5.9 (PyPI), seen 2026-11-27.
# Expect: `get` returns the vectors that were stored, or, as in some databases, vectors of length 1. (guess: stored, 80 %)
# Happens: with cosine it returns neither: the vector is rebuilt from a normalised one and its length, so it looks right
# but differs in the last bits: 0.2 comes back as 0.19999999. With L2 every vector is exact.
# Who is bitten: exports, checksums and "did the vector change" tests.
# Do: compare vectors with a tolerance, never with a hash.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv chromadb==1.5.9
venv/bin/python - > seen <<'PROGRAM'
import chromadb, numpy as np
print('chromadb', chromadb.__version__)
client = chromadb.EphemeralClient()
stored = np.array([[1 + i / 10, 0.2] for i in range(600)], dtype=np.float32)
for space in ('cosine', 'l2'):
    notes = client.create_collection('notes-' + space, embedding_function=None, configuration={'hnsw': {'space': space}})
    ids = [str(i) for i in range(600)]
    notes.add(ids=ids, embeddings=stored)
    read = np.array(notes.get(ids=ids, include=['embeddings'])['embeddings'], dtype=np.float32)
    same = int((read == stored).all(axis=1).sum())
    print(space, 'all equal within 1e-5:', bool(np.allclose(read, stored, atol=1e-5)), 'exact:', 'all' if same == 600 else 'not all')
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9
cosine all equal within 1e-5: True exact: not all
l2 all equal within 1e-5: True exact: all
EXPECTED
