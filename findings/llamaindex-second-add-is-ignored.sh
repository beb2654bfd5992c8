#!/usr/bin/env bash
# llama-index-core 0.14.25 with its Qdrant store 0.10.4 and Chroma store 0.6.0 (PyPI), seen 2026-11-27.
# Expect: adding a node under an id that exists replaces it, or raises, alike in each store. (guess: replaces, 70 %)
# Happens: the Qdrant store replaces it. The Chroma store returns the id as if it were added and keeps the old node: text,
# vector and metadata. And "not equal" finds nodes without the key in Chroma, not in Qdrant.
# Who is bitten: whoever refreshes documents by id and changes the store behind the same code.
# Do: delete first; write `!=` filters together with IS_EMPTY where the store has it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv llama-index-core==0.14.25 llama-index-vector-stores-qdrant==0.10.4 llama-index-vector-stores-chroma==0.6.0 qdrant-client==1.20.0 chromadb==1.5.9
venv/bin/python - > seen <<'PROGRAM'
import warnings
warnings.simplefilter('ignore')
import chromadb, uuid
from importlib.metadata import version
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient
print('llama-index-core', version('llama-index-core'))
collection = chromadb.EphemeralClient().create_collection('notes', embedding_function=None)
id = str(uuid.UUID(int=1))
node = lambda id, text, metadata: TextNode(id_=id, text=text, embedding=[1.0, 0.0], metadata=metadata)
for store in (QdrantVectorStore('notes', client=QdrantClient(':memory:')), ChromaVectorStore(chroma_collection=collection)):
    store.add([node(id, 'old text', {'topic': 'food'}), node(str(uuid.UUID(int=2)), 'without a topic', {'n': 1})])
    added = store.add([node(id, 'new text', {'topic': 'work'})])
    read = store.get_nodes(node_ids=[id])[0]
    print(type(store).__name__, 'added:', added == [id], read.text, read.metadata)
    other = MetadataFilters(filters=[MetadataFilter(key='topic', operator=FilterOperator.NE, value='anything')])
    print('  topic != anything:', sorted(n.text for n in store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=9, filters=other)).nodes))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
llama-index-core 0.14.25
QdrantVectorStore added: True new text {'topic': 'work'}
  topic != anything: ['new text']
ChromaVectorStore added: True old text {'topic': 'food'}
  topic != anything: ['old text', 'without a topic']
EXPECTED
