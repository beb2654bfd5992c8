#!/usr/bin/env bash
# langgraph-checkpoint-postgres 3.2.0 with langgraph-checkpoint 4.3.2 (PyPI), on PGlite 0.5.14 (npm), seen 2026-11-27.
# Expect: PostgresStore compares numbers as numbers, as InMemoryStore of the same library does. (guess: as numbers, 60 %)
# Happens: it compares their text: `$gt: 9` finds 9.5 and neither 10 nor 100, `$lt: 9` finds 10 and 100. What passes in tests with
# InMemoryStore answers otherwise in production. `$ne` and null leave out items without the key, and InMemoryStore
# finds them with both.
# Who is bitten: filters by score, counter, year before 1000 or time in seconds of different lengths.
# Do: store such numbers as text of one length with leading zeros, and test filters on PostgreSQL.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langgraph-checkpoint-postgres==3.2.0 langgraph-checkpoint==4.3.2 'psycopg[binary]==3.3.9'
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
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
print('langgraph-checkpoint-postgres', version('langgraph-checkpoint-postgres'))
memory = InMemoryStore()
with PostgresStore.from_conn_string(f"postgresql://postgres@{open('address').read().strip()}/postgres?sslmode=disable") as postgres:
    postgres.conn.prepare_threshold = None
    postgres.setup()
    for store in (memory, postgres):
        for n in (1, 9.5, 10, 100):
            store.put(('numbers',), str(n), {'n': n})
        for key, value in {'x': {'topic': 'x'}, 'null': {'topic': None}, 'none': {}}.items():
            store.put(('topics',), key, value)
    for namespace, filter in (('numbers', {'n': {'$gt': 9}}), ('numbers', {'n': {'$lt': 9}}), ('topics', {'topic': {'$ne': 'x'}}), ('topics', {'topic': None})):
        found = (' '.join(sorted(item.key for item in store.search((namespace,), filter=filter))) for store in (memory, postgres))
        print(filter, '| memory: {} | PostgreSQL: {}'.format(*found))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langgraph-checkpoint-postgres 3.2.0
{'n': {'$gt': 9}} | memory: 10 100 9.5 | PostgreSQL: 9.5
{'n': {'$lt': 9}} | memory: 1 | PostgreSQL: 1 10 100
{'topic': {'$ne': 'x'}} | memory: none null | PostgreSQL: null
{'topic': None} | memory: none null | PostgreSQL: null
EXPECTED
