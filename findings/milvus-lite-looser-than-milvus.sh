#!/usr/bin/env bash
# milvus-lite 3.2.2 with pymilvus 3.0.2 (PyPI), seen 2026-11-27.
# Expect: what Milvus documents: at most 16,384 results, `insert` never replaces, max_length of text counts bytes.
# (guess: the same in the file engine, 85 %)
# Happens: 20,000 results come back, `insert` of a known id replaces the row, three letters of six bytes fit in length 5,
# `delete` of an unknown id answers that id as deleted, and limit=0 returns one row.
# Who is bitten: tests that pass on milvus-lite and fail, or count differently, on a server.
# Do: keep these limits in your own code, and use upsert where you mean it.
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
from pymilvus import DataType, MilvusClient
client = MilvusClient(os.path.join(tempfile.mkdtemp(dir='.'), 'notes.db'))
schema = client.create_schema()
schema.add_field('id', DataType.INT64, is_primary=True)
schema.add_field('v', DataType.FLOAT_VECTOR, dim=2)
schema.add_field('s', DataType.VARCHAR, max_length=5)
index = client.prepare_index_params()
index.add_index('v', index_type='FLAT', metric_type='L2')
client.create_collection('notes', schema=schema, index_params=index)
client.insert('notes', [{'id': i, 'v': [1, i], 's': 'a'} for i in range(20000)])
print('milvus-lite', version('milvus-lite'))
print('search limit 20000:', len(client.search('notes', [[1, 0]], limit=20000)[0]))
print('query limit 20000:', len(client.query('notes', filter='id >= 0', limit=20000, output_fields=['id'])))
print('query limit 0:', len(client.query('notes', filter='id >= 0', limit=0, output_fields=['id'])))
client.insert('notes', [{'id': 1, 'v': [1, 1], 's': 'ééé'}])
print('inserted twice:', [row['s'] for row in client.query('notes', filter='id == 1', output_fields=['s'])])
print('delete of an unknown id:', client.delete('notes', ids=[99999]))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
search limit 20000: 20000
query limit 20000: 20000
query limit 0: 1
inserted twice: ['ééé']
delete of an unknown id: [99999]
EXPECTED
