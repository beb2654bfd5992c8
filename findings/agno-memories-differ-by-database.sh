#!/usr/bin/env bash
# agno 3.1.10 (PyPI), the memories of SqliteDb, InMemoryDb and JsonDb, seen 2026-11-28.
# Expect: the same calls find the same memories in each, and a memory keeps the time it is given. (guess, after a first look: alike, 60 %; "café" is found, 90 %)
# Happens: two topics mean both in SQLite and either of them in the others; no topics mean all in SQLite and none in the others. SQLite looks for the topic in
# the stored JSON, where é is an escape: "café" is listed by get_all_memory_topics and never found; % in search_content finds everything there.
# updated_at is set to now by all three, so that imported memories have one age.
# Who is bitten: tests in memory before SQLite in production, topics in any language but English, moves of memories.
# Do: filter by topics and words in your own code, and keep an old time in the text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv agno==3.1.10 sqlalchemy==2.0.58
venv/bin/python - > seen <<'PROGRAM'
from importlib.metadata import version
from agno.db.in_memory import InMemoryDb
from agno.db.json import JsonDb
from agno.db.schemas.memory import UserMemory
from agno.db.sqlite import SqliteDb
print('agno', version('agno'))
for db in (SqliteDb(db_file='notes.db'), InMemoryDb(), JsonDb(db_path='notes')):
    for identity, topics, text in (('1', ['food'], 'likes tea'), ('2', ['food', 'work'], 'sells tea'), ('3', ['café'], 'likes coffee')):
        db.upsert_user_memory(UserMemory(memory=text, memory_id=identity, topics=topics, user_id='anna', updated_at=1000))
    print(type(db).__name__)
    for more in ({'topics': ['food', 'work']}, {'topics': []}, {'topics': ['café']}, {'search_content': '%'}):
        print(' ', more, *(memory.memory_id for memory in db.get_user_memories(user_id='anna', **more)))
    print('  topics:', *sorted(db.get_all_memory_topics()), '| time kept:', db.get_user_memory('1').updated_at == 1000)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
agno 3.1.10
SqliteDb
  {'topics': ['food', 'work']} 2
  {'topics': []} 1 2 3
  {'topics': ['café']}
  {'search_content': '%'} 1 2 3
  topics: café food work | time kept: False
InMemoryDb
  {'topics': ['food', 'work']} 1 2
  {'topics': []}
  {'topics': ['café']} 3
  {'search_content': '%'}
  topics: café food work | time kept: False
JsonDb
  {'topics': ['food', 'work']} 1 2
  {'topics': []}
  {'topics': ['café']} 3
  {'search_content': '%'}
  topics: café food work | time kept: False
EXPECTED
