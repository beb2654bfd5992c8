#!/usr/bin/env bash
# agno 3.1.10 with Chroma 1.5.9 (PyPI), seen 2026-11-27.
# Expect: `similarity_score` of a hit grows with similarity, 1 for the same vector. (guess: yes, 90 %)
# Happens: it is the cosine distance: 0 for the same vector, 2 for the opposite one.
# Who is bitten: code that keeps hits above a score, or merges them with those of other stores: it keeps the worst.
# Do: use 1 - similarity_score, and look again after an update.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv agno==3.1.10 chromadb==1.5.9 openai==3.57.0
venv/bin/python - > seen <<'PROGRAM'
import logging, tempfile, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from agno.knowledge.document import Document
from agno.knowledge.embedder.base import Embedder
from agno.vectordb.chroma import ChromaDb
vectors = {'same': [1.0, 0.0], 'unrelated': [0.0, 1.0], 'opposite': [-1.0, 0.0]}
class Fixed(Embedder):
    def get_embedding(self, text): return vectors[text]
    def get_embedding_and_usage(self, text): return vectors[text], None
store = ChromaDb(collection='notes', path=tempfile.mkdtemp(dir='.'), persistent_client=True, embedder=Fixed(dimensions=2))
store.create()
for text in vectors:
    store.insert('hash of ' + text, [Document(content=text, name=text, meta_data={'n': 1})])
print('agno', version('agno'))
for document in store.search('same', limit=3):
    print(document.content, 'similarity_score', document.meta_data['similarity_score'])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
agno 3.1.10
same similarity_score 0.0
unrelated similarity_score 1.0
opposite similarity_score 2.0
EXPECTED
