#!/usr/bin/env bash
# langchain-postgres 0.0.19 (PGVectorStore) and pgvector-haystack 8.1.2 (PyPI), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: a document whose value has another form than the number in the filter is no match, and the others are found.
# (guess: no match, 60 %)
# Happens: PostgreSQL refuses the whole query. One 9.5 among integers is enough, since a whole number in the filter casts every value to
# integer: `n > 9` fails, `n > 9.0` works. One text ("two") fails both. So it is in llama-index-vector-stores-postgres 0.9.0 with a text.
# Who is bitten: metadata written by people, models or several programs: one document stops the search of all.
# Do: one type per key, checked before the write; write numbers in filters as floats.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-postgres==0.0.19 langchain-core==1.8.3 pgvector-haystack==8.1.2 haystack-ai==3.4.1 pgvector==0.3.6 'psycopg[binary]==3.3.9' sqlalchemy==2.0.58
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17
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
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python - > seen 2> errors <<'PROGRAM'
import warnings, uuid
warnings.simplefilter('ignore')
from importlib.metadata import version
from sqlalchemy import NullPool
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_postgres import PGEngine, PGVectorStore
from haystack import Document
from haystack.utils import Secret
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore
print(*(f'{name} {version(name)}' for name in ('langchain-postgres', 'pgvector-haystack')))
address = f"postgres@{open('address').read().strip()}/postgres?sslmode=disable"
engine = PGEngine.from_connection_string(f'postgresql+psycopg://{address}', poolclass=NullPool, connect_args={'prepare_threshold': None})
engine.init_vectorstore_table('langchain', 3)
langchain = PGVectorStore.create_sync(engine, DeterministicFakeEmbedding(size=3), 'langchain')
haystack = PgvectorDocumentStore(connection_string=Secret.from_token(f'postgresql://{address}'), table_name='haystack', embedding_dimension=3)
def write(name, n):
    langchain.add_texts([name], metadatas=[{'n': n}], ids=[str(uuid.uuid4())])
    haystack.write_documents([Document(id=name, content=name, meta={'n': n})])
def show(label, value=9):
    for name, ask in {'LangChain': lambda: [d.page_content for d in langchain.similarity_search('q', k=9, filter={'n': {'$gt': value}})],
                      'Haystack': lambda: [d.content for d in haystack.filter_documents({'field': 'meta.n', 'operator': '>', 'value': value})]}.items():
        try: print(f'{label}, n > {value}, {name}:', *sorted(ask()))
        except Exception as error: print(f'{label}, n > {value}, {name}:', type(error).__name__, 'invalid input syntax' in str(error))
write('one', 1); write('ten', 10); show('integers')
write('9.5', 9.5); show('and 9.5'); show('and 9.5', 9.0)
write('text', 'two'); show('and a text', 9.0)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langchain-postgres 0.0.19 pgvector-haystack 8.1.2
integers, n > 9, LangChain: ten
integers, n > 9, Haystack: ten
and 9.5, n > 9, LangChain: DataError True
and 9.5, n > 9, Haystack: DocumentStoreError True
and 9.5, n > 9.0, LangChain: 9.5 ten
and 9.5, n > 9.0, Haystack: 9.5 ten
and a text, n > 9.0, LangChain: DataError True
and a text, n > 9.0, Haystack: DocumentStoreError True
EXPECTED
