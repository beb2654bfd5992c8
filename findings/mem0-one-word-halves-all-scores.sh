#!/usr/bin/env bash
# mem0ai 2.2.1 (PyPI), its store for pgvector, on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: the score of a memory for a query depends on these two, and none is below the threshold. (no guess from before its formula was read)
# Happens: as soon as one memory of the user holds the words of the query, the scores of all are divided by two, since the words then count as much as the
# vector, and most get next to nothing for them. The threshold looks at the vector's score before that: with 0.5 come 0.48 and 0.4.
# Who is bitten: `if score > 0.7` around search, which holds until somebody adds a memory with such a word; scores compared between queries.
# Do: compare scores within one answer only; explain=True gives the vector's own as score_details.semantic_score.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv mem0ai==2.2.1 'psycopg[binary]==3.3.9' psycopg-pool==3.3.3 openai==3.57.0
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17
cat > serve.mjs <<'PROGRAM'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
const server = new PGLiteSocketServer({ db: await PGlite.create({ extensions: { vector } }), port: 0, maxConnections: 9 })
await server.start()
console.log(server.getServerConn())
PROGRAM
node serve.mjs > address & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until [ -s address ] || ! kill -0 $server; do sleep 0.1; done
venv/bin/python - > seen <<'PROGRAM'
import os
os.environ.update(MEM0_TELEMETRY='False', MEM0_DIR=os.getcwd(), OPENAI_API_KEY='none')
import logging, warnings
warnings.simplefilter('ignore')
logging.disable(logging.CRITICAL)
from importlib.metadata import version
from unittest.mock import patch
from mem0 import Memory
print('mem0ai', version('mem0ai'))
vectors = {'drink': [0.8, 0.6], 'likes tea': [1.0, 0.0], 'owns a cup': [0.6, 0.8], 'cannot drink milk': [0.0, 1.0]}
address = f"postgresql://postgres@{open('address').read().strip()}/postgres?sslmode=disable"
store = {'provider': 'pgvector', 'config': {'connection_string': address, 'embedding_model_dims': 2, 'hnsw': False}}
with patch('mem0.embeddings.openai.OpenAIEmbedding.embed', lambda self, text, *rest, **more: vectors[text]):
    memory = Memory.from_config({'vector_store': store, 'history_db_path': 'history.db'})
    def search(**more): return memory.search('drink', filters={'user_id': 'ana'}, threshold=0.5, **more)['results']
    for text in ('likes tea', 'owns a cup'):
        memory.add(text, user_id='ana', infer=False)
    print('before', {hit['memory']: round(hit['score'], 2) for hit in search()})
    memory.add('cannot drink milk', user_id='ana', infer=False)
    print('after', {hit['memory']: round(hit['score'], 2) for hit in search()})
    print('vectors', {hit['memory']: round(hit['score_details']['semantic_score'], 2) for hit in search(explain=True)})
PROGRAM
cat seen
diff seen - <<'EXPECTED'
mem0ai 2.2.1
before {'owns a cup': 0.96, 'likes tea': 0.8}
after {'owns a cup': 0.48, 'likes tea': 0.4, 'cannot drink milk': 0.32}
vectors {'owns a cup': 0.96, 'likes tea': 0.8, 'cannot drink milk': 0.6}
EXPECTED
