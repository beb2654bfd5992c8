#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm) and sqlite-vec 0.1.9 (PyPI), seen 2026-11-27.
# Expect: the function that writes a vector as JSON writes as many digits as a 32-bit float needs, 9, as pgvector does.
# (guess: yes, 55 %)
# Happens: libSQL's vector_extract writes 6 significant digits, sqlite-vec's vec_to_json 6 digits after the point: there a
# component of 0.0000001 is exported as 0.000000, and a small vector as zeros.
# Who is bitten: exports, copies from database to database, vectors that are edited as text.
# Do: read the blob (little-endian 32-bit floats) and make the text yourself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv apsw==3.54.1.0 sqlite-vec==0.1.9
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
venv/bin/python - > seen <<'PROGRAM'
import apsw, sqlite_vec, struct, subprocess
program = '''
import { createClient } from '@libsql/client'
const db = createClient({ url: ':memory:' })
const { rows } = await db.execute("select vector_extract(v), v from (select vector32('[0.123456789,0.0000001,123456.789]') as v)")
console.log('libSQL as text:', rows[0][0])
console.log('libSQL as blob:', Array.from(new Float32Array(rows[0][1])).join(' '))
'''
print(subprocess.run(['node', '--input-type=module', '-e', program], check=True, capture_output=True, text=True).stdout, end='')
db = apsw.Connection(':memory:')
db.enable_load_extension(True)
db.load_extension(sqlite_vec.loadable_path())
for text in ('[0.123456789,0.0000001,123456.789]', '[1e-7,2e-7,-1e-7]'):
    blob = db.execute('select vec_f32(?)', (text,)).fetchone()[0]
    print('sqlite-vec as text:', db.execute('select vec_to_json(?)', (blob,)).fetchone()[0])
    print('sqlite-vec as blob:', *(f'{x:.9g}' for x in struct.unpack('<3f', blob)))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
libSQL as text: [0.123457,1e-07,123457]
libSQL as blob: 0.12345679104328156 1.0000000116860974e-7 123456.7890625
sqlite-vec as text: [0.123457,0.000000,123456.789063]
sqlite-vec as blob: 0.123456791 1.00000001e-07 123456.789
sqlite-vec as text: [0.000000,0.000000,-0.000000]
sqlite-vec as blob: 1.00000001e-07 2.00000002e-07 -1.00000001e-07
EXPECTED
