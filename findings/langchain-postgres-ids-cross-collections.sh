#!/usr/bin/env bash
# langchain-postgres 0.0.19, PGVector (PyPI), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: a collection is a space of its own: the same id in two collections is two documents, and one collection deletes none of the
# other's. (guess: the row moves to the second collection, 50 %)
# Happens: add_texts to the second collection answers the id, writes text, vector and metadata into the first collection's document, and
# the second stays empty. `delete(ids)` through the second deletes documents of the first.
# Who is bitten: a collection a user or a project with ids such as "doc-1": one user's text becomes the other's.
# Do: put the collection's name into the id, and pass collection_only=True to delete.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-postgres==0.0.19 langchain-core==1.8.3 pgvector==0.3.6 'psycopg[binary]==3.3.9' sqlalchemy==2.0.58
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
venv/bin/python - > seen <<'PROGRAM'
import warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_postgres import PGVector
from sqlalchemy import create_engine, NullPool
print('langchain-postgres', version('langchain-postgres'))
engine = create_engine(f"postgresql+psycopg://postgres@{open('address').read().strip()}/postgres?sslmode=disable", poolclass=NullPool, connect_args={'prepare_threshold': None})
ana, ben = (PGVector(DeterministicFakeEmbedding(size=3), collection_name=name, connection=engine) for name in ('ana', 'ben'))
def show(label):
    print(label, '|', *(f'{name}: {sorted((d.id, d.page_content) for d in store.similarity_search("x", k=9))}' for name, store in (('ana', ana), ('ben', ben))))
ana.add_texts(['tea of ana', 'ana lives in Rome'], ids=['1', '2'])
show('ana adds')
print('ben adds 1:', ben.add_texts(['coffee of ben'], ids=['1']))
show('afterwards')
ben.delete(['2'])
show('ben deletes 2')
ana.add_texts(['ana lives in Rome'], ids=['2'])
ben.delete(['2'], collection_only=True)
show('with collection_only')
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langchain-postgres 0.0.19
ana adds | ana: [('1', 'tea of ana'), ('2', 'ana lives in Rome')] ben: []
ben adds 1: ['1']
afterwards | ana: [('1', 'coffee of ben'), ('2', 'ana lives in Rome')] ben: []
ben deletes 2 | ana: [('1', 'coffee of ben')] ben: []
with collection_only | ana: [('1', 'coffee of ben'), ('2', 'ana lives in Rome')] ben: []
EXPECTED
