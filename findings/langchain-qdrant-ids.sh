#!/usr/bin/env bash
# langchain-qdrant 1.1.0 with qdrant-client 1.20.0 (PyPI), seen 2026-11-27.
# Expect: add_texts returns the ids under which a search shows the documents, in Document.id. (guess: yes, 75 %)
# Happens: the ids it makes are returned without dashes, the stored ones have dashes, Document.id of a hit is None, and the id
# is in the metadata as `_id` beside `_collection_name`. Add such a hit again, and both keys are stored as its metadata.
# Who is bitten: tables that keep the returned id and compare it as text; copies from collection to collection.
# Do: pass ids in the dashed form, and strip keys that begin with `_` before writing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-qdrant==1.1.0 qdrant-client==1.20.0
venv/bin/python - > seen <<'PROGRAM'
import warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models
class Fixed(Embeddings):
    def embed_documents(self, texts): return [[1.0, 0.0] for _ in texts]
    def embed_query(self, text): return [1.0, 0.0]
client = QdrantClient(':memory:')
for name in ('notes', 'copy'):
    client.create_collection(name, vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
store = QdrantVectorStore(client, 'notes', Fixed())
returned = store.add_texts(['tea'], metadatas=[{'topic': 'food'}])[0]
hit = store.similarity_search('tea')[0]
print('langchain-qdrant', version('langchain-qdrant'))
print('returned', len(returned), 'letters; in the hit', len(hit.metadata['_id']), 'letters; equal:', returned == hit.metadata['_id'])
print('Document.id:', hit.id, 'metadata:', sorted(hit.metadata))
QdrantVectorStore(client, 'copy', Fixed()).add_documents([hit])
print('stored by a copy:', sorted(client.scroll('copy')[0][0].payload['metadata']))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langchain-qdrant 1.1.0
returned 32 letters; in the hit 36 letters; equal: False
Document.id: None metadata: ['_collection_name', '_id', 'topic']
stored by a copy: ['_collection_name', '_id', 'topic']
EXPECTED
