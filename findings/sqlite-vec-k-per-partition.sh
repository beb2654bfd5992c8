#!/usr/bin/env bash
# sqlite-vec 0.1.9 (PyPI), seen 2026-11-27.
# Expect: k = 2 gives the two nearest rows of those that the condition admits. (guess: yes, 90 %)
# Happens: with IN over a partition key it gives two of each partition, not sorted by distance as a whole; with IN over a
# metadata column it gives two in all.
# Who is bitten: "the ten nearest of this user's three projects" returns thirty, the first ten being those of one project.
# Do: add ORDER BY distance and LIMIT around it, or ask once per partition.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv apsw==3.54.1.0 sqlite-vec==0.1.9
venv/bin/python - > seen <<'PROGRAM'
import apsw, sqlite_vec
db = apsw.Connection(':memory:')
db.enable_load_extension(True)
db.load_extension(sqlite_vec.loadable_path())
print('sqlite-vec', db.execute('select vec_version()').fetchone()[0])
for column in ('project text partition key', 'project text'):
    db.execute(f'create virtual table notes using vec0({column}, v float[2])')
    for i in range(1, 7):
        db.execute('insert into notes (rowid, project, v) values (?, ?, ?)', (i, 'b' if i < 4 else 'a', f'[{i},0]'))
    print(column + ':', db.execute("select rowid, distance from notes where v match '[0,0]' and k = 2 and project in ('a', 'b')").fetchall())
    db.execute('drop table notes')
PROGRAM
cat seen
diff seen - <<'EXPECTED'
sqlite-vec v0.1.9
project text partition key: [(4, 4.0), (5, 5.0), (1, 1.0), (2, 2.0)]
project text: [(1, 1.0), (2, 2.0)]
EXPECTED
