#!/usr/bin/env bash
# mem0ai 2.2.1 (PyPI) on Qdrant's local mode 1.20.0, Chroma 1.5.9 and FAISS 1.15.1, seen 2026-11-27.
# Expect: the score of the same two vectors is their cosine in each store, so that one threshold fits. (guess: cosine, 60 %)
# Happens: unrelated memories (a right angle) get 0 in Qdrant and 0.33 in Chroma and FAISS, and a vector of another length but
# nearly the same direction gets 0.6 in Qdrant, 0.05 there. `search` drops what is below 0.1 unless told otherwise, so it hides
# the better of the two in Chroma and FAISS. `get_all` returns 20 of 30.
# Who is bitten: thresholds carried from store to store; embedders whose vectors are not of length 1.
# Do: normalise vectors, pass threshold and top_k always.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv mem0ai==2.2.1 qdrant-client==1.20.0 chromadb==1.5.9 faiss-cpu==1.15.1 openai==3.57.0
venv/bin/python - > seen <<'PROGRAM'
import os, tempfile
os.environ.update(MEM0_TELEMETRY='False', MEM0_DIR=tempfile.mkdtemp(dir='.'), OPENAI_API_KEY='none')
import logging, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from unittest.mock import patch
from mem0 import Memory
print('mem0ai', version('mem0ai'))
vectors = {'same': [1.0, 0.0], 'unrelated': [0.0, 1.0], 'long': [3.0, 4.0]}
stores = {'qdrant': {'embedding_model_dims': 2, 'on_disk': True}, 'chroma': {}, 'faiss': {'embedding_model_dims': 2}}
embed = lambda self, text, *rest, **more: vectors[text.split()[0]]
with patch('mem0.embeddings.openai.OpenAIEmbedding.embed', embed):
    for name, config in stores.items():
        store = {'provider': name, 'config': {'collection_name': 'memories', 'path': tempfile.mkdtemp(dir='.'), **config}}
        memory = Memory.from_config({'vector_store': store, 'history_db_path': os.path.join(tempfile.mkdtemp(dir='.'), 'history.db')})
        for text in vectors:
            memory.add(text, user_id='ana', infer=False)
        for more in ({}, {'threshold': 0.0}):
            print(name, more, {hit['memory']: round(hit['score'], 2) for hit in memory.search('same', filters={'user_id': 'ana'}, **more)['results']})
        for i in range(30):
            memory.add(f'same {i}', user_id='bob', infer=False)
        print(name, 'get_all of 30:', len(memory.get_all(filters={'user_id': 'bob'})['results']))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
mem0ai 2.2.1
qdrant {} {'same': 1.0, 'long': 0.6}
qdrant {'threshold': 0.0} {'same': 1.0, 'long': 0.6, 'unrelated': 0.0}
qdrant get_all of 30: 20
chroma {} {'same': 1.0, 'unrelated': 0.33}
chroma {'threshold': 0.0} {'same': 1.0, 'unrelated': 0.33, 'long': 0.05}
chroma get_all of 30: 20
faiss {} {'same': 1.0, 'unrelated': 0.33}
faiss {'threshold': 0.0} {'same': 1.0, 'unrelated': 0.33, 'long': 0.05}
faiss get_all of 30: 20
EXPECTED
