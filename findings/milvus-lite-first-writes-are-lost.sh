#!/usr/bin/env bash
# milvus-lite 3.2.2 and pymilvus 3.0.2 (PyPI, Python 3.11), seen 2026-11-27.
# Expect: an insert that was acknowledged is there, and stays. (guess: yes, 97 %)
# Happens: if the first requests after a start of the server come at once, each may open the collection for itself. Of eight inserts that eight
# clients made and that were all acknowledged, some are not there, and after another start fewer still. No kill is needed. If one request came first, all stay.
# Who is bitten: a service with several connections, whenever the server starts again: rows are missing, or have an older version.
# Do: after each start send one request alone, such as load_collection, and wait for it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check milvus-lite==3.2.2 pymilvus==3.0.2
venv/bin/pip list 2>/dev/null | grep -iE '^(milvus.lite|pymilvus) '
venv/bin/python - > seen <<'PROGRAM'
import os, socket, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor
from pymilvus import MilvusClient
with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0)); port = probe.getsockname()[1]
def start(folder):
    command = [os.path.join(os.path.dirname(sys.executable), 'milvus-lite'), 'server', '--data-dir', folder, '--host', '127.0.0.1', '--port', str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try: return socket.create_connection(('127.0.0.1', port)).close() or server
        except OSError: time.sleep(0.05)
def stop(server): server.terminate(); server.wait()
def connect(): return MilvusClient(f'http://127.0.0.1:{port}')
rows = lambda first, count: [{'id': n, 'v': [1.0, 0.0]} for n in range(first, first + count)]
def lost(alone_first):
    folder = tempfile.mkdtemp(dir='.')
    server = start(folder); client = connect()
    client.create_collection('notes', dimension=2, vector_field_name='v', consistency_level='Strong')
    client.insert('notes', rows(0, 1000)); client.close(); stop(server)
    server = start(folder); clients = [connect() for _ in range(8)]
    if alone_first: clients[0].load_collection('notes')
    with ThreadPoolExecutor(8) as pool:
        made = sum(pool.map(lambda n: clients[n].insert('notes', rows(1000 + n, 1))['insert_count'], range(8)))
    clients[0].load_collection('notes')
    there = clients[0].query('notes', filter='id >= 0', output_fields=['count(*)'])[0]['count(*)']
    for client in clients: client.close()
    stop(server)
    return 1000 + made - there
at_once, one_first = [[lost(alone) for _ in range(4)] for alone in (False, True)]
print('all at once: acknowledged and lost:', sum(at_once) > 0)
print('one alone first: lost:', one_first)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
all at once: acknowledged and lost: True
one alone first: lost: [0, 0, 0, 0]
EXPECTED
