#!/usr/bin/env bash
# haystack-ai 3.4.1, qdrant-haystack 13.1.0 (PyPI), seen 2026-11-27.
# Expect: `in []` matches no document, as in Haystack's own InMemoryDocumentStore. (guess: none, 90 %)
# Happens: in the Qdrant store it matches every document, for an empty list makes an empty condition. A delete by it
# empties the store. Two stores of one framework, opposite answers.
# Who is bitten: filters such as "in the projects that this user may see", for a user who may see none.
# Do: do not ask at all when the list is empty.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv haystack-ai==3.4.1 qdrant-haystack==13.1.0 qdrant-client==1.20.0
venv/bin/python - > seen <<'PROGRAM'
import os, warnings
warnings.simplefilter('ignore')
os.environ['HAYSTACK_TELEMETRY_ENABLED'] = 'False'
from importlib.metadata import version
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
print('qdrant-haystack', version('qdrant-haystack'))
nothing = {'field': 'meta.project', 'operator': 'in', 'value': []}
for store in (InMemoryDocumentStore(), QdrantDocumentStore(':memory:', embedding_dim=2, progress_bar=False)):
    store.write_documents([Document(id=id, content=id, embedding=[1.0, 0.0], meta={'project': id}) for id in ('a', 'b')])
    found = len(store.filter_documents(nothing))
    print(type(store).__name__, 'in []:', found, 'of', store.count_documents(), 'deleted by it:', store.delete_by_filter(nothing), 'left:', store.count_documents())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
qdrant-haystack 13.1.0
InMemoryDocumentStore in []: 0 of 2 deleted by it: 0 left: 2
QdrantDocumentStore in []: 2 of 2 deleted by it: 2 left: 0
EXPECTED
