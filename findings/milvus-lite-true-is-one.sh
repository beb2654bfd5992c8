#!/usr/bin/env bash
# milvus-lite 3.2.2 with pymilvus 3.0.2 (PyPI), seen 2026-11-27.
# Expect: true and 1 are different values in JSON and in dynamic fields. (guess: different, 75 %)
# Happens: they are equal, both ways, and true is greater than 0: the file engine compares as Python does.
# Who is bitten: tests that run on milvus-lite and filter flags and counters under one key.
# Do: give a key one type.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv milvus-lite==3.2.2 pymilvus==3.0.2
venv/bin/python - > seen <<'PROGRAM'
import os, tempfile
from importlib.metadata import version
from pymilvus import MilvusClient
client = MilvusClient(os.path.join(tempfile.mkdtemp(dir='.'), 'notes.db'))
client.create_collection('notes', dimension=2)
client.insert('notes', [{'id': 1, 'vector': [1, 0], 'n': 1, 'm': {'k': 1}}, {'id': 2, 'vector': [1, 0], 'n': True, 'm': {'k': True}},
                        {'id': 3, 'vector': [1, 0], 'n': 1.0, 'm': {'k': 1.0}}, {'id': 4, 'vector': [1, 0], 'n': '1', 'm': {'k': '1'}}])
print('milvus-lite', version('milvus-lite'))
for filter in ('n == 1', 'm["k"] == 1', 'm["k"] == true', 'm["k"] > 0', 'm["k"] == "1"'):
    print(filter, sorted(row['id'] for row in client.query('notes', filter=filter, output_fields=['id'])))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
n == 1 [1, 2, 3]
m["k"] == 1 [1, 2, 3]
m["k"] == true [1, 2, 3]
m["k"] > 0 [1, 2, 3]
m["k"] == "1" [4]
EXPECTED
