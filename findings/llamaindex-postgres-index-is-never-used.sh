#!/usr/bin/env bash
# llama-index-vector-stores-postgres 0.9.0 with llama-index-core 0.14.25 (PyPI), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-28.
# Expect: the HNSW index that `hnsw_kwargs` ask for serves the store's searches, and hnsw_dist_method says how they measure. (no guess was written down before)
# Happens: every search measures by cosine. With use_halfvec the index is by L2 unless hnsw_dist_method says otherwise, and with another
# hnsw_dist_method it is by that one: no search can use it, each compares all rows, and results do not change.
# Who is bitten: large tables with use_halfvec, which vectors of more than 2,000 dimensions need, and whoever asks for the inner product.
# Do: hnsw_dist_method='halfvec_cosine_ops' with use_halfvec, 'vector_cosine_ops' without; make the index again.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv llama-index-vector-stores-postgres==0.9.0 llama-index-core==0.14.25 sqlalchemy==2.0.58
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17
for package in @electric-sql/pglite @electric-sql/pglite-pgvector @electric-sql/pglite-socket; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > serve.mjs <<'PROGRAM'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
const db = await PGlite.create({ extensions: { vector } })
await db.exec('create extension vector')
const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 9 })
await server.start()
console.log(server.getServerConn())
PROGRAM
node serve.mjs > address & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until [ -s address ] || ! kill -0 $server; do sleep 0.1; done
venv/bin/python - > seen 2> errors <<'PROGRAM'
from importlib.metadata import version
from sqlalchemy import NullPool, event, text
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.vector_stores.postgres import PGVectorStore
print('llama-index-vector-stores-postgres', version('llama-index-vector-stores-postgres'))
host, port = open('address').read().strip().split(':')
def look(name, **more):
    hnsw = {'hnsw_m': 16, 'hnsw_ef_construction': 64, 'hnsw_ef_search': 40, **more.pop('hnsw', {})}
    store = PGVectorStore.from_params(host=host, port=port, database='postgres', user='postgres', password='x', table_name=name, embed_dim=3, hnsw_kwargs=hnsw, create_engine_kwargs={'poolclass': NullPool, 'connect_args': {'sslmode': 'disable'}}, **more)
    store.add([TextNode(text=word, embedding=vector) for word, vector in (('near', [1.0, 0.1, 0.0]), ('long', [9.0, 0.0, 0.0]))])
    asked = []
    event.listen(store._engine, 'before_cursor_execute', lambda c, cursor, statement, *_: asked.append(statement))
    first = store.query(VectorStoreQuery(query_embedding=[1.0, 0.0, 0.0], similarity_top_k=1)).nodes[0].get_content(); operator = next(o for o in ('<=>', '<->', '<#>') if o in asked[-1])
    with store._session() as session:
        index = session.execute(text(f"select indexdef from pg_indexes where indexdef like '%hnsw%' and tablename = 'data_{name}'")).scalar()
        session.execute(text('set local enable_seqscan = off'))
        plan = ' '.join(row[0] for row in session.execute(text(f"explain select id from data_{name} order by embedding {operator} '[1,0,0]' limit 1")))
    print(name, '|', index.split('(embedding ')[1].split(')')[0], '| asks', operator, '| index used:', 'Index Scan' in plan, '| nearest:', first)
for name, half in (('plain', False), ('half', True)): look(name, use_halfvec=half)
look('half_cosine', use_halfvec=True, hnsw={'hnsw_dist_method': 'halfvec_cosine_ops'})
look('l2', hnsw={'hnsw_dist_method': 'vector_l2_ops'})
PROGRAM
cat seen
diff seen - <<'EXPECTED'
llama-index-vector-stores-postgres 0.9.0
plain | vector_cosine_ops | asks <=> | index used: True | nearest: long
half | halfvec_l2_ops | asks <=> | index used: False | nearest: long
half_cosine | halfvec_cosine_ops | asks <=> | index used: True | nearest: long
l2 | vector_l2_ops | asks <=> | index used: False | nearest: long
EXPECTED
