#!/usr/bin/env bash
# chromadb 1.5.9 (PyPI), seen 2026-11-27.
# Expect: the count that `delete` answers is the number of records deleted: 0 for ids that do not exist.
# (guess: nothing is returned, 70 %)
# Happens: by ids it counts what was asked for, {'deleted': 3} for three unknown ids; with a filter it counts records.
# Who is bitten: erasure reports and retries that read the number as proof.
# Do: count or get before and after.
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
notes.add(ids=['a', 'b'], embeddings=[[1, 0], [0, 1]], metadatas=[{'n': 1}, {'n': 2}])
print('unknown ids', notes.delete(ids=['x', 'y', 'z']), 'left', notes.count())
print('one of two', notes.delete(ids=['a', 'x']), 'left', notes.count())
print('filter without a match', notes.delete(where={'n': 99}), 'left', notes.count())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9
unknown ids {'deleted': 3} left 2
one of two {'deleted': 2} left 1
filter without a match {'deleted': 0} left 1
EXPECTED
