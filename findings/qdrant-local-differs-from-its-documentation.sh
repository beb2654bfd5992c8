#!/usr/bin/env bash
# qdrant-client 1.20.0, local mode (":memory:", PyPI), seen 2026-11-27.
# Expect: local mode refuses what the documented server refuses, and does what it documents. (guess: small differences, 65 %)
# Happens: it takes a negative id (documented: unsigned or UUID) and orders by a field without an index; ordering by text gives no
# points at all, silently; a point whose field is a list comes once for each of its numbers; set_payload of an unknown point
# raises KeyError, and a query of a wrong length numpy's error.
# Who is bitten: tests on local mode that pass, or fail, for reasons that no server has.
# Do: run such tests against a server; keep text that must be ordered as a number or a date.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv qdrant-client==1.20.0
venv/bin/python - > seen <<'PROGRAM'
import warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from qdrant_client import QdrantClient, models
client = QdrantClient(':memory:')
client.create_collection('notes', vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
point = lambda id, **payload: models.PointStruct(id=id, vector=[1, 0], payload=payload)
client.upsert('notes', [point(1, name='b', n=2), point(2, name='a', n=1), point(3, n=[0, 5])])
def seen(label, call):
    try:
        print(label, call())
    except Exception as error:
        print(label, type(error).__name__, str(error).split('\n')[0])
order = lambda key: [point.id for point in client.scroll('notes', order_by=key)[0]]
print('qdrant-client', version('qdrant-client'))
seen('by number:', lambda: order('n'))
seen('by text:', lambda: order('name'))
seen('set_payload of an unknown point:', lambda: client.set_payload('notes', {'n': 1}, points=[99]))
seen('query of another length:', lambda: client.query_points('notes', query=[1, 0, 0]).points)
client.upsert('notes', [point(-1)])
seen('ids:', lambda: [point.id for point in client.scroll('notes')[0]])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
qdrant-client 1.20.0
by number: [3, 2, 1, 3]
by text: []
set_payload of an unknown point: KeyError 99
query of another length: ValueError shapes (3,2) and (3,) not aligned: 2 (dim 1) != 3 (dim 0)
ids: [-1, 1, 2, 3]
EXPECTED
