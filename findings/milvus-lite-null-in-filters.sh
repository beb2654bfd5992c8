#!/usr/bin/env bash
# milvus-lite 3.2.2 with pymilvus 3.0.2 (PyPI), seen 2026-11-27.
# Expect: a record without a value is treated alike by every form of "not": left out by all, as in SQL, or found by all.
# (guess: left out by all, 65 %)
# Happens: `n != 1` and `not (n == 1)` leave it out, `n not in [1]` finds it; so with a missing dynamic field. A null array
# has length 0 and "does not contain x".
# Who is bitten: code that builds `not in` for many values and `!=` for one.
# Do: write the null case out: `n != 1 or n is null`, `n not in [1] and n is not null`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv milvus-lite==3.2.2 pymilvus==3.0.2
venv/bin/python - > seen <<'PROGRAM'
import logging, os, tempfile
from importlib.metadata import version
from pymilvus import DataType, MilvusClient
client = MilvusClient(os.path.join(tempfile.mkdtemp(dir='.'), 'notes.db'))
schema = client.create_schema(enable_dynamic_field=True)
schema.add_field('id', DataType.VARCHAR, max_length=10, is_primary=True)
schema.add_field('v', DataType.FLOAT_VECTOR, dim=2)
schema.add_field('n', DataType.INT64, nullable=True)
schema.add_field('tags', DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=4, max_length=10, nullable=True)
index = client.prepare_index_params()
index.add_index('v', index_type='FLAT', metric_type='COSINE')
client.create_collection('notes', schema=schema, index_params=index)
client.insert('notes', [{'id': 'one', 'v': [1, 0], 'n': 1, 'tags': ['x'], 'topic': 'a'},
                        {'id': 'two', 'v': [1, 0], 'n': 2, 'tags': ['y'], 'topic': 'b'}, {'id': 'none', 'v': [1, 0]}])
print('milvus-lite', version('milvus-lite'))
for filter in ('n != 1', 'not (n == 1)', 'n not in [1]', 'topic != "a"', 'topic not in ["a"]',
               'array_length(tags) == 0', 'not array_contains(tags, "x")'):
    print(filter, sorted(row['id'] for row in client.query('notes', filter=filter, output_fields=['id'])))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
n != 1 ['two']
not (n == 1) ['two']
n not in [1] ['none', 'two']
topic != "a" ['two']
topic not in ["a"] ['none', 'two']
array_length(tags) == 0 ['none']
not array_contains(tags, "x") ['none', 'two']
EXPECTED
