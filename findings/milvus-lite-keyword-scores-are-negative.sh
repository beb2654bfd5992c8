#!/usr/bin/env bash
# milvus-lite 3.2.2 with pymilvus 3.0.2 and mem0ai 2.2.1 (PyPI), seen 2026-11-27.
# Expect: a hit of a full-text search has a BM25 score above 0, larger for a better one, as Milvus documents it. (met on the way: no guess was written down before)
# Happens: the scores are negative, the better the lower. The order is right. mem0 counts words only where the score is above 0, so on Milvus Lite its
# search, which is to join words and vectors, counts no word at all, without a message.
# Who is bitten: code that drops scores below a bound or ranks by them again; tests of hybrid search on Milvus Lite.
# Do: take the order and not the number; in Milvus Lite join lists with hybrid_search, whose rankers give 0 to 1 here.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv milvus-lite==3.2.2 pymilvus==3.0.2 mem0ai==2.2.1 openai==3.57.0
venv/bin/python - > seen <<'PROGRAM'
import os
os.environ.update(MEM0_TELEMETRY='False', MEM0_DIR=os.getcwd(), OPENAI_API_KEY='none')
import logging, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from unittest.mock import patch
from mem0 import Memory
from pymilvus import AnnSearchRequest, WeightedRanker
for package in ('milvus-lite', 'mem0ai'): print(package, version(package))
# mem0 makes the collection, with Milvus' own function for BM25.
store = {'provider': 'milvus', 'config': {'url': os.path.abspath('notes.db'), 'token': '', 'embedding_model_dims': 2, 'metric_type': 'COSINE'}}
with patch('mem0.embeddings.openai.OpenAIEmbedding.embed', lambda self, text, *rest, **more: [1.0, 0.0]):
    memory = Memory.from_config({'vector_store': store, 'history_db_path': 'history.db'})
    for text in ('black coffee with milk', 'water', 'black tea'):
        memory.add(text, user_id='ana', infer=False)
    hits = memory.search('black tea', filters={'user_id': 'ana'}, explain=True)['results']
client, more = memory.vector_store.client, {'limit': 3, 'output_fields': ['text']}
show = lambda name, found: print(name, [(hit['entity']['text'], round(hit['distance'], 2)) for hit in found[0]])
show('words:', client.search('mem0', ['black tea'], anns_field='sparse', **more))
show('hybrid:', client.hybrid_search('mem0', [AnnSearchRequest(['black tea'], 'sparse', {}, limit=3)], WeightedRanker(1.0), **more))
print('mem0:', {hit['memory']: (round(hit['score'], 2), hit['score_details']['bm25_score']) for hit in sorted(hits, key=lambda hit: hit['memory'])})
PROGRAM
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
mem0ai 2.2.1
words: [('black tea', -1.55), ('black coffee with milk', -0.36)]
hybrid: [('black tea', 0.64), ('black coffee with milk', 0.22)]
mem0: {'black coffee with milk': (1.0, 0.0), 'black tea': (1.0, 0.0), 'water': (1.0, 0.0)}
EXPECTED
