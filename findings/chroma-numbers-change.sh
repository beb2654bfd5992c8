#!/usr/bin/env bash
# chromadb 1.5.9 (PyPI), seen 2026-11-27.
# Expect: a number that cannot be kept is refused, as NaN in a vector is. (guess: both are errors, 65 %)
# Happens: an integer of 2^63 or more becomes a float and loses its last digits, and a NaN in metadata becomes "no value":
# a record whose only key it was has no metadata afterwards. A filter for 2^63 - 1 finds 2^63 + 1 too.
# Who is bitten: 64-bit ids and hashes kept as numbers (snowflakes, unsigned), scores that may be NaN.
# Do: keep such ids as text, and leave NaN out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv chromadb==1.5.9
venv/bin/python - > seen <<'PROGRAM'
import chromadb
print('chromadb', chromadb.__version__)
notes = chromadb.EphemeralClient().create_collection('notes', embedding_function=None)
notes.add(ids=['fits', 'large', 'nan'], embeddings=[[1, 0]] * 3,
          metadatas=[{'id': 2**63 - 1}, {'id': 2**63 + 1}, {'score': float('nan')}])
for id in ('fits', 'large', 'nan'):
    print(id, notes.get(ids=[id])['metadatas'][0])
print('found by 2^63 - 1', notes.get(where={'id': 2**63 - 1})['ids'])
try:
    notes.add(ids=['vector'], embeddings=[[float('nan'), 0]])
except Exception as error:
    print('vector:', type(error).__name__)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
chromadb 1.5.9
fits {'id': 9223372036854775807}
large {'id': 9.223372036854776e+18}
nan None
found by 2^63 - 1 ['fits', 'large']
vector: InvalidArgumentError
EXPECTED
