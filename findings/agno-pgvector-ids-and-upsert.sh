#!/usr/bin/env bash
# agno 3.1.10, PgVector (PyPI), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: a document is stored under its own id, upsert writes the documents that are given, and a hit can be written again. (guess: own id,
# 70 %; only the given ones, 75 %; again, 85 %)
# Happens: the id is a hash of id and content hash; delete_by_id with the own id says True and deletes nothing. upsert first deletes every
# row of that content hash, so one document of two takes the other with it. A hit cannot be upserted: its embedding is a numpy array, which
# raises. Its metadata have a `similarity_score`, which is stored if they are written back.
# Who is bitten: erasure by id; updates of one chunk of a file.
# Do: delete by the id of a hit, upsert all chunks of a content together, and drop similarity_score.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv agno==3.1.10 pgvector==0.3.6 'psycopg[binary]==3.3.9' sqlalchemy==2.0.58
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
AGNO_TELEMETRY=false venv/bin/python - > log 2> errors <<'PROGRAM'
from importlib.metadata import version
from agno.knowledge.document import Document
from agno.vectordb.pgvector import PgVector
from sqlalchemy import create_engine, NullPool
out = open('seen', 'w')
print('agno', version('agno'), file=out)
class Embedder:
    dimensions, enable_batch = 2, False
    def get_embedding(self, text): return [1.0, 0.0] if text.startswith('tea') else [0.9, 0.1]
    def get_embedding_and_usage(self, text): return self.get_embedding(text), None
engine = create_engine(f"postgresql+psycopg://postgres@{open('address').read().strip()}/postgres?sslmode=disable", poolclass=NullPool, connect_args={'prepare_threshold': None})
store = PgVector('notes', schema='public', db_engine=engine, embedder=Embedder())
store.create()
def document(id, **metadata): return Document(id=id, name=id, content=id, meta_data=metadata)
def rows(): return sorted(hit.name for hit in store.search('tea', limit=9))
store.insert('file', [document('tea', n=1), document('milk', n=2)])
print('own id kept:', store.search('tea', limit=1)[0].id == 'tea', '| delete_by_id:', store.delete_by_id('tea'), '| left:', rows(), file=out)
store.upsert('file', [document('tea', n=3)])
print('one of two upserted:', rows(), file=out)
hit = store.search('tea', limit=1)[0]
print('metadata of the hit:', hit.meta_data, file=out)
try: store.upsert('file', [hit])
except ValueError as error: print('hit upserted:', type(error).__name__, str(error).split(' is ')[0], '| left:', rows(), file=out)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
agno 3.1.10
own id kept: False | delete_by_id: True | left: ['milk', 'tea']
one of two upserted: ['tea']
metadata of the hit: {'n': 3, 'similarity_score': 1.0}
hit upserted: ValueError The truth value of an array with more than one element | left: ['tea']
EXPECTED
