#!/usr/bin/env bash
# langchain-postgres 0.0.19, PGVector (PyPI), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: a document without the key, or with null, is treated alike by `$ne`, `$nin` and `$not`. (guess: left out by all, 60 %)
# Happens: three answers. `$ne` finds null and leaves out the missing key, `$nin` leaves out both, `$not` finds both. `n: '1'` does not
# find the number 1, `$in: ['1']` does. `$in` with true raises, while `f: true` works. `$ne: 1` leaves out the text "2".
# Who is bitten: self-query retrievers and query builders, which choose the form by the number of values.
# Do: write the missing case out with `$exists`, or use `$not` throughout.
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
store = PGVector(DeterministicFakeEmbedding(size=3), collection_name='notes', connection=engine)
documents = {'x': {'topic': 'x', 'n': 1, 'f': True}, 'y': {'topic': 'y', 'n': 10}, 'none': {'n': 9.5}, 'null': {'topic': None, 'n': '2'}}
store.add_texts(list(documents), metadatas=list(documents.values()), ids=list(documents))
for filter in ({'topic': {'$ne': 'x'}}, {'topic': {'$nin': ['x']}}, {'$not': {'topic': 'x'}}, {'topic': {'$nin': []}}, {'n': 1}, {'n': '1'}, {'n': {'$in': ['1']}}, {'n': {'$ne': 1}}, {'f': True}, {'f': {'$in': [True]}}):
    try:
        found = ' '.join(sorted(hit.id for hit in store.similarity_search('q', k=9, filter=filter)))
    except NotImplementedError as error:
        found = f'NotImplementedError: {error}'
    print(filter, '|', found)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langchain-postgres 0.0.19
{'topic': {'$ne': 'x'}} | null y
{'topic': {'$nin': ['x']}} | y
{'$not': {'topic': 'x'}} | none null y
{'topic': {'$nin': []}} | none null x y
{'n': 1} | x
{'n': '1'} | 
{'n': {'$in': ['1']}} | x
{'n': {'$ne': 1}} | none y
{'f': True} | x
{'f': {'$in': [True]}} | NotImplementedError: Unsupported type: <class 'bool'> for value: True
EXPECTED
