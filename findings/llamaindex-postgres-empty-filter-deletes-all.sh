#!/usr/bin/env bash
# llama-index-vector-stores-postgres 0.9.0 with llama-index-core 0.14.25 (PyPI), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: delete_nodes without conditions deletes nothing or is refused; adding a known id replaces the node. (guess: nothing, 70 %;
# replaces, 25 %, a second row, 75 %)
# Happens: no argument and an empty list of ids delete nothing, but `MetadataFilters(filters=[])` deletes every node. A known id makes a
# second row; both are found, get_nodes returns two of one id. `in []` is an error of SQL, a true value an error of the filter.
# Who is bitten: deletes whose filters are computed; refreshes by id.
# Do: check that the list of filters is not empty; delete_nodes before add.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
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
from sqlalchemy import NullPool
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.vector_stores.postgres import PGVectorStore
print('llama-index-vector-stores-postgres', version('llama-index-vector-stores-postgres'))
host, port = open('address').read().strip().split(':')
store = PGVectorStore.from_params(host=host, port=port, database='postgres', user='postgres', password='x', table_name='notes', embed_dim=3, create_engine_kwargs={'poolclass': NullPool, 'connect_args': {'sslmode': 'disable'}})
def node(id, text): return TextNode(id_=id, text=text, metadata={'topic': id}, embedding=[1.0, 0.0, 0.0])
def found(filters=None): return sorted(n.get_content() for n in store.query(VectorStoreQuery(query_embedding=[1.0, 0.0, 0.0], similarity_top_k=9, filters=filters)).nodes)
store.add([node('a', 'old a'), node('b', 'b')])
store.add([node('a', 'new a')])
print('added again:', found(), 'by id:', sorted(n.get_content() for n in store.get_nodes(['a'])))
for label, values in (('in []', []), ('in [a]', ['a'])):
    try: print(label, found(MetadataFilters(filters=[MetadataFilter(key='topic', value=values, operator=FilterOperator.IN)])))
    except Exception as error: print(label, type(error).__name__, 'syntax error' in str(error))
try: MetadataFilter(key='done', value=True)
except Exception as error: print('true:', type(error).__name__)
for label, arguments in (('nothing', {}), ('no ids', {'node_ids': []}), ('no filters', {'filters': MetadataFilters(filters=[])})):
    store.delete_nodes(**arguments)
    print('after delete_nodes with', label, len(found()))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
llama-index-vector-stores-postgres 0.9.0
added again: ['b', 'new a', 'old a'] by id: ['new a', 'old a']
in [] ProgrammingError True
in [a] ['new a', 'old a']
true: ValidationError
after delete_nodes with nothing 3
after delete_nodes with no ids 3
after delete_nodes with no filters 0
EXPECTED
