#!/usr/bin/env bash
# langchain-community 0.4.2 with lancedb 0.40.0 (PyPI), seen 2026-11-27.
# Expect: add_documents adds: after two calls both documents are there. (guess: yes, 45 %)
# Happens: every call after the first replaces the whole table, since the default of the constructor is mode="overwrite", which the
# first call, that creates the table, does not show. add_texts on a table that another process filled empties it too.
# Who is bitten: loaders that add in batches keep the last batch; a nightly job that adds one document deletes all others.
# Do: LanceDB(..., mode="append").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-community==0.4.2 langchain-core==1.8.3 lancedb==0.40.0 pandas==3.1.1
venv/bin/python - > seen <<'PROGRAM'
import warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from langchain_community.vectorstores import LanceDB
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
class Fixed(Embeddings):
    def embed_documents(self, texts): return [[1.0, 0.0] for _ in texts]
    def embed_query(self, text): return [1.0, 0.0]
print('langchain-community', version('langchain-community'))
for more in ({}, {'mode': 'append'}):
    open_store = lambda: LanceDB(uri='data', embedding=Fixed(), table_name=more.get('mode', 'notes'), **more)
    store = open_store()
    for text in ('tea', 'milk', 'bread'):
        if text == 'bread': store = open_store()
        store.add_documents([Document(page_content=text, metadata={'user': 'ana'})])
        print(more, 'after', text, sorted(document.page_content for document in store.similarity_search('x', k=9)))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langchain-community 0.4.2
{} after tea ['tea']
{} after milk ['milk']
{} after bread ['bread']
{'mode': 'append'} after tea ['tea']
{'mode': 'append'} after milk ['milk', 'tea']
{'mode': 'append'} after bread ['bread', 'milk', 'tea']
EXPECTED
