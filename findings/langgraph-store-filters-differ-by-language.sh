#!/usr/bin/env bash
# langgraph 1.2.24 with langgraph-checkpoint 4.3.2 (PyPI) and @langchain/langgraph 1.7.3 (npm), InMemoryStore, seen 2026-11-27.
# Expect: the same items and the same filter give the same keys in Python and JavaScript. (guess: the same, 75 %)
# Happens: null finds items without the key in Python only; a list value matches in Python only; 1 matches true in Python only;
# $in exists in JavaScript only; and `$gt` raises in Python as soon as one item of the namespace lacks the key.
# Who is bitten: a service in one language beside an agent in the other; the first memory without the field breaks a search.
# Do: give every item the field, and filter with equality of text and numbers only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langgraph==1.2.24 langgraph-checkpoint==4.3.2
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @langchain/core@1.4.0 @langchain/langgraph@1.7.3
for package in @langchain/core @langchain/langgraph; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
venv/bin/python - > seen <<'PROGRAM'
import json, subprocess, warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from langgraph.store.memory import InMemoryStore
items = {'one': {'n': 1}, 'two': {'n': 2, 'tags': ['x']}, 'true': {'n': True}, 'null': {'n': 3, 'topic': None}}
filters = [{'n': 1}, {'topic': None}, {'tags': ['x']}, {'n': {'$in': [1, 2]}}, {'n': {'$gt': 1}}, {'size': {'$gt': 1}}, {'size': {'$ne': 1}}]
store = InMemoryStore()
for key, value in items.items():
    store.put(('memories', 'ana'), key, value)
program = '''
import { InMemoryStore } from '@langchain/langgraph'
const [items, filters] = JSON.parse(process.argv[1])
const store = new InMemoryStore()
for (const [key, value] of Object.entries(items)) await store.put(['memories', 'ana'], key, value)
const found = []
for (const filter of filters) found.push(await store.search(['memories', 'ana'], { filter }).then(hits => hits.map(hit => hit.key).join(' '), error => error.message))
console.log(JSON.stringify(found))
'''
javascript = json.loads(subprocess.run(['node', '--input-type=module', '-e', program, json.dumps([items, filters])], check=True, capture_output=True, text=True).stdout.strip().split('\n')[-1])
print('langgraph', version('langgraph'))
for filter, other in zip(filters, javascript):
    try:
        found = ' '.join(item.key for item in store.search(('memories', 'ana'), filter=filter))
    except Exception as error:
        found = type(error).__name__
    print(json.dumps(filter), '| Python:', found, '| JavaScript:', other)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
langgraph 1.2.24
{"n": 1} | Python: one true | JavaScript: one
{"topic": null} | Python: one two true null | JavaScript: null
{"tags": ["x"]} | Python: two | JavaScript: 
{"n": {"$in": [1, 2]}} | Python: ValueError | JavaScript: one two
{"n": {"$gt": 1}} | Python: two null | JavaScript: two null
{"size": {"$gt": 1}} | Python: TypeError | JavaScript: 
{"size": {"$ne": 1}} | Python: one two true null | JavaScript: one two true null
EXPECTED
