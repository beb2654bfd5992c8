#!/usr/bin/env bash
# mem0ai 2.2.1 (PyPI) on Qdrant's local mode 1.20.0, Chroma 1.5.9 and FAISS 1.15.1, seen 2026-11-27.
# Expect: a filter of mem0's documentation means the same in each store, or is refused. (guess: small differences, 70 %)
# Happens: `ne` leaves out memories without the key in Qdrant and finds them in Chroma. FAISS compares the whole operator with
# the stored value, so `ne`, `in`, `gt` and `*` find nothing, silently. AND fails in Chroma beside a user, since the user is not
# folded in.
# Who is bitten: a change of the store changes which memories an agent sees.
# Do: keep to equality, or test each operator on your store.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv mem0ai==2.2.1 qdrant-client==1.20.0 chromadb==1.5.9 faiss-cpu==1.15.1
venv/bin/python - > seen <<'PROGRAM'
import os, tempfile, uuid
os.environ.update(MEM0_TELEMETRY='False', MEM0_DIR=tempfile.mkdtemp(dir='.'))
import logging, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from mem0.utils.factory import VectorStoreFactory
print('mem0ai', version('mem0ai'))
memories = {'food': {'topic': 'food', 'n': 1}, 'work': {'topic': 'work', 'n': 2}, 'no topic': {}}
stores = {'qdrant': {'embedding_model_dims': 2, 'on_disk': True}, 'chroma': {}, 'faiss': {'embedding_model_dims': 2}}
filters = ({'topic': 'food'}, {'topic': {'ne': 'food'}}, {'topic': {'in': ['food', 'work']}}, {'n': {'gt': 1}}, {'topic': '*'},
           {'AND': [{'topic': 'food'}, {'n': 1}]})
for name, config in stores.items():
    store = VectorStoreFactory.create(name, {'collection_name': 'memories', 'path': tempfile.mkdtemp(dir='.'), **config})
    store.insert([[1.0, 0.0]] * 3, [{'data': data, 'user_id': 'ana', **metadata} for data, metadata in memories.items()], [str(uuid.uuid4()) for _ in memories])
    for filter in filters:
        try:
            found = store.list({'user_id': 'ana', **filter})
            found = found[0] if isinstance(found[0], list) else found
            print(name, filter, sorted(memory.payload['data'] for memory in found))
        except Exception as error:
            print(name, filter, type(error).__name__, str(error).split('\n')[0])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
mem0ai 2.2.1
qdrant {'topic': 'food'} ['food']
qdrant {'topic': {'ne': 'food'}} ['work']
qdrant {'topic': {'in': ['food', 'work']}} ['food', 'work']
qdrant {'n': {'gt': 1}} ['work']
qdrant {'topic': '*'} ['food', 'no topic', 'work']
qdrant {'AND': [{'topic': 'food'}, {'n': 1}]} ['food']
chroma {'topic': 'food'} ['food']
chroma {'topic': {'ne': 'food'}} ['no topic', 'work']
chroma {'topic': {'in': ['food', 'work']}} ['food', 'work']
chroma {'n': {'gt': 1}} ['work']
chroma {'topic': '*'} ['food', 'no topic', 'work']
chroma {'AND': [{'topic': 'food'}, {'n': 1}]} InvalidArgumentError Invalid where clause
faiss {'topic': 'food'} ['food']
faiss {'topic': {'ne': 'food'}} []
faiss {'topic': {'in': ['food', 'work']}} []
faiss {'n': {'gt': 1}} []
faiss {'topic': '*'} []
faiss {'AND': [{'topic': 'food'}, {'n': 1}]} []
EXPECTED
