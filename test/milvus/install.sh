#!/usr/bin/env bash
# bash test/milvus/install.sh folder: puts Milvus Lite into the folder, with nothing outside of it. TEST_MILVUS_LITE=folder/bin/milvus-lite names it for
# the tests. Needs python3 with venv.
set -euo pipefail
python3 -m venv "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check milvus-lite==3.2.2 pymilvus==3.0.2
