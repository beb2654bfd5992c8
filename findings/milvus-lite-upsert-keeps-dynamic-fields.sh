#!/usr/bin/env bash
# milvus-lite 3.2.2 with pymilvus 3.0.2 (PyPI), seen 2026-11-27; the same with @zilliz/milvus2-sdk-node 3.0.6.
# Expect: upsert without partial_update replaces the whole row. (guess: replaces all, 85 %)
# Happens: fields of the schema are replaced, dynamic ones are merged: a row upserted without `n` and without the dynamic
# field `topic` loses n and keeps topic.
# Who is bitten: labels of an old version still answer filters after the row was written anew.
# Do: delete before you upsert, use `insert` (which replaces here), or keep what may vanish in fields of the schema.
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
schema = client.create_schema(enable_dynamic_field=True)
schema.add_field('id', DataType.INT64, is_primary=True)
schema.add_field('v', DataType.FLOAT_VECTOR, dim=2)
schema.add_field('n', DataType.INT64, nullable=True)
index = client.prepare_index_params()
index.add_index('v', index_type='FLAT', metric_type='L2')
client.create_collection('notes', schema=schema, index_params=index)
print('milvus-lite', version('milvus-lite'))
client.insert('notes', [{'id': i, 'v': [1, 0], 'n': 7, 'topic': 'old'} for i in (1, 2)])
client.upsert('notes', [{'id': 1, 'v': [0, 1]}])
client.upsert('notes', [{'id': 2, 'v': [0, 1], 'other': 1}])
for id in (1, 2):
    row = client.get('notes', [id])[0]
    print(id, 'n:', row['n'], 'topic:', row.get('topic'), 'other:', row.get('other'))
print('found by its old topic:', [row['id'] for row in client.query('notes', filter='topic == "old"', output_fields=['id'])])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
1 n: None topic: old other: None
2 n: None topic: old other: 1
found by its old topic: [1, 2]
EXPECTED
