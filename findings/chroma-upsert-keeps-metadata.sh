#!/usr/bin/env bash
# chromadb 1.5.9, chroma-haystack 5.0.0 (PyPI), seen 2026-11-27.
# Expect: upsert replaces the record, as in other vector databases; above all a policy called OVERWRITE does.
# (guess: Chroma's upsert merges, 60 %; Haystack's OVERWRITE replaces, 85 %)
# Happens: upsert merges key by key. A key that is gone in the new metadata stays, also when no metadata are given, and
# Haystack's OVERWRITE, which is such an upsert, gives the new text the old metadata.
# Who is bitten: filters keep finding a record by a label that its new version no longer has; so with langchain-chroma.
# Do: delete and add, or set the keys that shall vanish to None in `update`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv chromadb==1.5.9 chroma-haystack==5.0.0 haystack-ai==3.4.1
venv/bin/python - > seen <<'PROGRAM'
import os
os.environ['HAYSTACK_TELEMETRY_ENABLED'] = 'False'
import chromadb
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.chroma import ChromaDocumentStore
notes = chromadb.EphemeralClient().create_collection('notes', embedding_function=None)
notes.upsert(ids=['1'], embeddings=[[1, 0]], metadatas=[{'topic': 'food', 'old': True}])
notes.upsert(ids=['1'], embeddings=[[0, 1]], metadatas=[{'topic': 'work'}])
print('chromadb', chromadb.__version__, sorted(notes.get(ids=['1'])['metadatas'][0].items()))
notes.update(ids=['1'], metadatas=[{'old': None}])
print('old set to None', notes.get(ids=['1'])['metadatas'][0])
store = ChromaDocumentStore(collection_name='documents')
for text, meta in (('likes tea', {'topic': 'food', 'secret': 'yes'}), ('likes coffee', {'topic': 'drink'})):
    store.write_documents([Document(id='1', content=text, embedding=[1.0, 0.0], meta=meta)], policy=DuplicatePolicy.OVERWRITE)
document = store.filter_documents()[0]
print('Haystack', document.content, sorted(document.meta.items()))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9 [('old', True), ('topic', 'work')]
old set to None {'topic': 'work'}
Haystack likes coffee [('secret', 'yes'), ('topic', 'drink')]
EXPECTED
