#!/usr/bin/env bash
# langchain-chroma 1.1.0, langchain-qdrant 1.1.0, langchain-milvus 0.4.0 (PyPI), all with cosine, seen 2026-11-27.
# Expect: similarity_search_with_relevance_scores, whose score goes "from 0 to 1" for each store, gives the same pair of
# vectors the same score, so that one score_threshold fits. (guess: (1 + cosine) / 2 in each, 55 %)
# Happens: Chroma's is the cosine (and can be -1), Qdrant's and Milvus' is (1 + cosine) / 2. With a threshold of 0.5, Chroma
# leaves unrelated documents out, and Qdrant and Milvus return them.
# Who is bitten: retrievers with search_type="similarity_score_threshold" when the store is changed.
# Do: choose the threshold per store; 0.5 in Chroma is 0.75 in the others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-core==1.8.3 langchain-chroma==1.1.0 langchain-qdrant==1.1.0 langchain-milvus==0.4.0 qdrant-client==1.20.0 chromadb==1.5.9 milvus-lite==3.2.2
venv/bin/python - > seen <<'PROGRAM'
import logging, tempfile, uuid, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
import chromadb
from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings
from langchain_milvus import Milvus
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models
vectors = {'same': [1.0, 0.0], 'close': [3.0, 4.0], 'unrelated': [0.0, 1.0]}
class Fixed(Embeddings):
    def embed_documents(self, texts): return [vectors.get(text, [1.0, 0.0]) for text in texts]
    def embed_query(self, text): return vectors[text]
client = QdrantClient(':memory:')
client.create_collection('notes', vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
for store in (Chroma('notes', Fixed(), client=chromadb.EphemeralClient(), collection_metadata={'hnsw:space': 'cosine'}), QdrantVectorStore(client, 'notes', Fixed()),
              Milvus(Fixed(), connection_args={'uri': tempfile.mkdtemp(dir='.') + '/notes.db'}, index_params={'index_type': 'FLAT', 'metric_type': 'COSINE'})):
    store.add_texts(list(vectors), ids=[str(uuid.uuid4()) for _ in vectors])
    for more in ({}, {'score_threshold': 0.5}):
        print(type(store).__name__, more, {document.page_content: round(score, 2) for document, score in store.similarity_search_with_relevance_scores('same', k=3, **more)})
PROGRAM
cat seen
diff seen - <<'EXPECTED'
Chroma {} {'same': 1.0, 'close': 0.6, 'unrelated': 0.0}
Chroma {'score_threshold': 0.5} {'same': 1.0, 'close': 0.6}
QdrantVectorStore {} {'same': 1.0, 'close': 0.8, 'unrelated': 0.5}
QdrantVectorStore {'score_threshold': 0.5} {'same': 1.0, 'close': 0.8, 'unrelated': 0.5}
Milvus {} {'same': 1.0, 'close': 0.8, 'unrelated': 0.5}
Milvus {'score_threshold': 0.5} {'same': 1.0, 'close': 0.8, 'unrelated': 0.5}
EXPECTED
