#!/usr/bin/env bash
# langchain-milvus 0.4.0 with milvus-lite 3.2.2 (PyPI), seen 2026-11-27.
# Expect: metadata of a later document are stored, or refused. (guess: keys that the first document did not have are dropped, 75 %)
# Happens: the keys of the first document become the fields of the collection. A later document with another key is taken and the key is
# dropped, without a word; one that lacks a key is refused. A filter by the dropped key raises "unknown field".
# Who is bitten: sources of different kinds in one collection: what came first decides what is kept of the others.
# Do: Milvus(..., enable_dynamic_field=True), which is False unless given.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-milvus==0.4.0 langchain-core==1.8.3 pymilvus==3.0.2 milvus-lite==3.2.2
venv/bin/python - > seen <<'PROGRAM'
import logging, tempfile, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_milvus import Milvus
class Fixed(Embeddings):
    def embed_documents(self, texts): return [[1.0, 0.0] for _ in texts]
    def embed_query(self, text): return [1.0, 0.0]
print('langchain-milvus', version('langchain-milvus'))
for more in ({}, {'enable_dynamic_field': True}):
    store = Milvus(Fixed(), connection_args={'uri': tempfile.mkdtemp(dir='.') + '/notes.db'}, **more)
    for id, (text, metadata) in enumerate({'tea': {'user': 'ana'}, 'milk': {'user': 'ana', 'source': 'a.pdf'}, 'bread': {}}.items()):
        try:
            store.add_documents([Document(page_content=text, metadata=metadata)], ids=[str(id)])
        except Exception as error:
            print(more, text, 'is refused:', type(error).__name__)
    print(more, {document.page_content: sorted(document.metadata) for document in store.similarity_search('x', k=9)})
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langchain-milvus 0.4.0
{} bread is refused: DataNotMatchException
{} {'tea': ['pk', 'user'], 'milk': ['pk', 'user']}
{'enable_dynamic_field': True} {'tea': ['pk', 'user'], 'milk': ['pk', 'source', 'user'], 'bread': ['pk']}
EXPECTED
