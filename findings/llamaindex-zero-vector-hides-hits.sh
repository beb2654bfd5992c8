#!/usr/bin/env bash
# llama-index-core 0.14.25, SimpleVectorStore (PyPI), seen 2026-11-27.
# Expect: a node whose vector is zero comes last or is an error. (guess: last, 70 %)
# Happens: its similarity is NaN, and the two best of five are the best one and the NaN; the real second is not returned.
# Asked for all, the NaN is last, so a larger k hides the fault.
# Who is bitten: embedders that answer zeros for empty text; the loss depends on the order of insertion.
# Do: refuse zero vectors before they are stored.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv llama-index-core==0.14.25
venv/bin/python - > seen <<'PROGRAM'
import warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
store = SimpleVectorStore()
store.add([TextNode(id_=id, text=id, embedding=vector) for id, vector in
           (('same', [1.0, 0.0]), ('right', [0.0, 1.0]), ('opposite', [-1.0, 0.0]), ('close', [3.0, 4.0]), ('empty', [0.0, 0.0]))])
print('llama-index-core', version('llama-index-core'))
for k in (2, 5):
    found = store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=k))
    print(k, [f'{id} {round(float(score), 1)}' for id, score in zip(found.ids, found.similarities)])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
llama-index-core 0.14.25
2 ['same 1.0', 'empty nan']
5 ['same 1.0', 'close 0.6', 'right 0.0', 'opposite -1.0', 'empty nan']
EXPECTED
