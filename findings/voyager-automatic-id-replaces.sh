#!/usr/bin/env bash
# voyager 2.2.3 (PyPI), seen 2026-11-27.
# Expect: an id that the index chooses itself is free; a deleted item is gone; asking for more than there are gives what there is.
# (guess: free, 95 %; k too large is an error, 70 %; a deleted item leaves the count, 70 %)
# Happens: ids are counted from 0 without a look at those in use: the second automatic id is 1, and replaces the item that was added
# as 1. A deleted item stays in len, `in` and ids, while get_vector says it does not exist. One search too large by one raises
# RecallError, which blames the index ("higher M value").
# Who is bitten: who mixes own and automatic ids; "k = len(index)" after the first deletion.
# Do: choose every id yourself, count live items yourself, catch RecallError and ask for fewer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv voyager==2.2.3 numpy==2.4.6
venv/bin/python - > seen <<'PROGRAM'
from importlib.metadata import version
from voyager import Index, Space
print('voyager', version('voyager'))
index = Index(Space.Cosine, num_dimensions=2)
print('added as', index.add_item([1, 0], id=1), 'vector', index.get_vector(1).tolist())
print('automatic ids', [index.add_item([0, 1]), index.add_item([-1, 0])])
print('items', len(index), 'vector of 1', index.get_vector(1).tolist())
index.mark_deleted(1)
print('deleted: len', len(index), ', in', 1 in index, ', ids', sorted(index.ids))
for label, ask in (('get_vector', lambda: index.get_vector(1)), ('search for len(index)', lambda: index.query([1, 0], k=len(index)))):
    try:
        print(label, ask())
    except Exception as error:
        print(label, type(error).__name__, error)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
voyager 2.2.3
added as 1 vector [1.0, 0.0]
automatic ids [0, 1]
items 2 vector of 1 [-1.0, 0.0]
deleted: len 2 , in True , ids [0, 1]
get_vector RuntimeError Label 1 not found in index.
search for len(index) RecallError Fewer than expected results were retrieved; only found 1 of 2 requested neighbors. Reconstruct the index with a higher M value to increase recall.
EXPECTED
