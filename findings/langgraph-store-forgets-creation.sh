#!/usr/bin/env bash
# langgraph-checkpoint 4.3.2 and langgraph-checkpoint-sqlite 3.1.2 (PyPI), seen 2026-11-27.
# Expect: `created_at` stays when an item is put again, and only `updated_at` changes. (guess: stays, 85 %)
# Happens: InMemoryStore and SqliteStore set both to the time of the last put: the time of creation is gone.
# Who is bitten: "oldest first", retention by age, audit of when something was learned.
# Do: keep the time of creation in the value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langgraph==1.2.24 langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2
venv/bin/python - > seen <<'PROGRAM'
import sqlite3, warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
print('langgraph-checkpoint', version('langgraph-checkpoint'), 'langgraph-checkpoint-sqlite', version('langgraph-checkpoint-sqlite'))
memory = InMemoryStore()
memory.put(('memories',), 'one', {'v': 1})
created = memory.get(('memories',), 'one').created_at
memory.put(('memories',), 'one', {'v': 2})
print('InMemoryStore keeps created_at:', memory.get(('memories',), 'one').created_at == created)
connection = sqlite3.connect(':memory:', check_same_thread=False, isolation_level=None)
store = SqliteStore(connection)
store.setup()
store.put(('memories',), 'one', {'v': 1})
connection.execute("update store set created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'")
print('SqliteStore, created in', store.get(('memories',), 'one').created_at.year)
store.put(('memories',), 'one', {'v': 2})
print('SqliteStore keeps created_at:', store.get(('memories',), 'one').created_at.year == 2020)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langgraph-checkpoint 4.3.2 langgraph-checkpoint-sqlite 3.1.2
InMemoryStore keeps created_at: False
SqliteStore, created in 2020
SqliteStore keeps created_at: False
EXPECTED
