#!/usr/bin/env bash
# agno 3.1.10 with Qdrant's local mode 1.20.0, Chroma 1.5.9 and LanceDB 0.40.0 (PyPI), seen 2026-11-27.
# Expect: a filter is applied before the nearest are taken, and delete_by_metadata({}) does the same in each store.
# (guess: filter first, 80 %; the empty condition is refused, 55 %)
# Happens: LanceDb takes the nearest first, then filters: with limit 1 the only match is not found. The empty condition deletes
# everything in LanceDb and Qdrant and nothing in ChromaDb. Qdrant says True for a delete that met nothing.
# Who is bitten: users with few documents among many; deletes whose condition is computed.
# Do: ask LanceDb for a large limit, and never call delete_by_metadata with an empty dict.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv agno==3.1.10 chromadb==1.5.9 qdrant-client==1.20.0 lancedb==0.40.0 openai==3.57.0
venv/bin/python - > seen <<'PROGRAM'
import logging, tempfile, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from agno.knowledge.document import Document
from agno.knowledge.embedder.base import Embedder
from agno.vectordb.chroma import ChromaDb
from agno.vectordb.lancedb import LanceDb
from agno.vectordb.qdrant import Qdrant
vectors = {'near': [1.0, 0.0], 'far': [0.0, 1.0], 'query': [1.0, 0.0]}
class Fixed(Embedder):
    def get_embedding(self, text): return vectors[text]
    def get_embedding_and_usage(self, text): return vectors[text], None
embedder = Fixed(dimensions=2)
print('agno', version('agno'))
for store in (LanceDb(uri=tempfile.mkdtemp(dir='.'), table_name='notes', embedder=embedder), Qdrant(collection='notes', location=':memory:', embedder=embedder),
              ChromaDb(collection='notes', path=tempfile.mkdtemp(dir='.'), persistent_client=True, embedder=embedder)):
    store.create()
    for text, user in (('near', 'ana'), ('far', 'bob')):
        store.insert('hash of ' + text, [Document(content=text, name=text, meta_data={'user': user})])
    name = type(store).__name__
    print(name, "bob's nearest:", [document.content for document in store.search('query', limit=1, filters={'user': 'bob'})])
    print(name, 'delete of nobody:', store.delete_by_metadata({'user': 'nobody'}), 'delete of {}:', store.delete_by_metadata({}), 'left:', len(store.search('query', limit=9)))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
agno 3.1.10
LanceDb bob's nearest: []
LanceDb delete of nobody: False delete of {}: True left: 0
Qdrant bob's nearest: ['far']
Qdrant delete of nobody: True delete of {}: True left: 0
ChromaDb bob's nearest: ['far']
ChromaDb delete of nobody: False delete of {}: False left: 2
EXPECTED
