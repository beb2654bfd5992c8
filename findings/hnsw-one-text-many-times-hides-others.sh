#!/usr/bin/env bash
# faiss-cpu 1.15.1, usearch 2.26.6, chromadb 1.5.9 (PyPI), pgvector 0.8.7 in @electric-sql/pglite-pgvector 0.0.15 (npm), seen 2026-11-28.
# Expect: a record is found by exactly its own vector, also where another text is stored many times. (guess: pgvector finds all 20,
# 70 %; Chroma does not, 60 %; faiss and usearch were seen before a guess)
# Happens: one vector is stored 3,000 times, twenty others once. Of these HNSW finds none or nearly none by its own vector, in all four: the equal ones are
# each other's only neighbours, so that no way of the graph leads out of them. The ten results are ten times the equal one. Without an index all are found.
# Who is bitten: stores of memories, where "ok", "thanks" or an empty text come again and again, and tables with a placeholder vector; also behind a filter.
# Do: store an equal text once, with a count; leave out the placeholder (null is in no index of pgvector); compare with an exact search.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv faiss-cpu==1.15.1 usearch==2.26.6 chromadb==1.5.9
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
const db = await PGlite.create({ extensions: { vector } })
await db.exec('create extension vector; create table notes (id int, v vector(8)); create index on notes using hnsw (v vector_l2_ops)')
for (const [id, v] of JSON.parse(readFileSync('vectors.json')).entries()) await db.query('insert into notes values ($1, $2)', [id, JSON.stringify(v)])
for (const how of ['enable_seqscan', 'enable_indexscan']) {
  await db.exec(`set ${how} = off`)
  let found = 0
  for (let id = 3000; id < 3020; id++) found += (await db.query(`select 1 from (select id from notes order by v <-> (select v from notes where id = ${id}) limit 10) as hits where id = ${id}`)).rows.length
  console.log(`pgvector ${(await db.query("select extversion from pg_extension where extname = 'vector'")).rows[0].extversion}, ${how} off:`, found <= 5 ? 'few' : found)
  await db.exec(`set ${how} = on`)
}
PROGRAM
cat > program.py <<'PROGRAM'
import json
import chromadb, faiss, numpy, usearch
from usearch.index import Index
vectors = numpy.zeros((3020, 8), 'f4'); vectors[:3000, 0] = 1
vectors[3000:] = numpy.random.default_rng(1).normal(size=(20, 8)).round(3)
json.dump(vectors.round(3).tolist(), open('vectors.json', 'w'))
def show(label, search):
    found = sum(identity in [int(hit) for hit in search(vectors[identity])] for identity in range(3000, 3020))
    print(label, 'few' if found <= 5 else found)
faiss.omp_set_num_threads(1)
for name in ('Flat', 'HNSW32'):
    index = faiss.index_factory(8, name); index.add(vectors)
    show(f'faiss {faiss.__version__} {name}:', lambda v: index.search(v[None], 10)[1][0])
graph = Index(ndim=8, metric='l2sq', dtype='f32'); graph.add(numpy.arange(3020), vectors, threads=1)
for exact in (True, False): show(f'usearch {usearch.__version__} exact={exact}:', lambda v: graph.search(v, 10, exact=exact).keys)
notes = chromadb.EphemeralClient().create_collection('notes', embedding_function=None)
notes.add(ids=[str(identity) for identity in range(3020)], embeddings=vectors)
show(f'chromadb {chromadb.__version__}:', lambda v: notes.query(query_embeddings=[v], n_results=10)['ids'][0])
PROGRAM
venv/bin/python program.py > seen && node program.mjs >> seen
cat seen
diff seen - <<'EXPECTED'
faiss 1.15.1 Flat: 20
faiss 1.15.1 HNSW32: few
usearch 2.26.6 exact=True: 20
usearch 2.26.6 exact=False: few
chromadb 1.5.9: few
pgvector 0.8.7, enable_seqscan off: few
pgvector 0.8.7, enable_indexscan off: 20
EXPECTED
