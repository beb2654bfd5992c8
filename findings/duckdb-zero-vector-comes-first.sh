#!/usr/bin/env bash
# duckdb 2.0.1 (PyPI), seen 2026-11-27.
# Expect: a zero vector has no cosine and is found last, or NULL, as other SQL databases do it. (guess: NaN, 60 %; last, 80 %)
# Happens: its similarity is NaN, which DuckDB takes for the largest number: it comes first by similarity, is the result of
# max_by, and passes `similarity > 0.9`. By distance it is last. A FLOAT[2] column that goes through a Parquet file comes back as
# FLOAT[], for which the array functions need a cast.
# Who is bitten: "order by similarity desc limit 5" over embeddings of empty texts: each is a hit for every question.
# Do: order by the distance, or add `where not isnan(…)`; read with `v::FLOAT[2]`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv duckdb==2.0.1
venv/bin/python - > seen <<'PROGRAM'
import duckdb
print('duckdb', duckdb.__version__)
db = duckdb.connect()
db.execute("create table notes as select * from (values ('zero', [0, 0]::float[2]), ('same', [1, 0]::float[2]), ('other', [0, 1]::float[2])) t(id, v)")
db.execute('create view found as select id, array_cosine_similarity(v, [1, 0]::float[2]) as similarity, array_cosine_distance(v, [1, 0]::float[2]) as distance from notes')
for sql in ('select id, similarity from found order by similarity desc', 'select id from found where similarity > 0.9 order by id', 'select max_by(id, similarity) from found', 'select id from found order by distance'):
    print(sql, '|', db.sql(sql).fetchall())
db.execute("copy notes to 'notes.parquet'")
print('column', db.sql("select typeof(v) from notes limit 1").fetchall(), 'from the file', db.sql("select typeof(v) from 'notes.parquet' limit 1").fetchall())
for column in ('v', 'v::float[2]'):
    try:
        print(column, db.sql(f"select array_cosine_similarity({column}, [1, 0]::float[2]) from 'notes.parquet' where id = 'same'").fetchall())
    except duckdb.Error as error:
        print(column, type(error).__name__)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
duckdb 2.0.1
select id, similarity from found order by similarity desc | [('zero', nan), ('same', 1.0), ('other', 0.0)]
select id from found where similarity > 0.9 order by id | [('same',), ('zero',)]
select max_by(id, similarity) from found | [('zero',)]
select id from found order by distance | [('same',), ('other',), ('zero',)]
column [('FLOAT[2]',)] from the file [('FLOAT[]',)]
v BinderException
v::float[2] [(1.0,)]
EXPECTED
