#!/usr/bin/env bash
# @langchain/community 1.1.29 with @zilliz/milvus2-sdk-node 3.0.6 (npm), milvus-lite 3.2.2 (PyPI), seen 2026-11-27.
# Expect: texts of any usual length fit, ids are kept, metadata come back as they were. (guess: the text field takes 65,535 bytes, 70 %; ids are kept, 60 %)
# Happens: the longest text of the first call is the limit of the field, so a longer one is refused for ever after. Given ids are dropped: the same id twice
# makes two documents. Numbers become floats of 32 bits: a time in milliseconds moves by twelve seconds. Every text that is JSON is parsed
# on reading: version "1.10" comes back as the number 1.1. A null is stored as the text "null", so a filter for null finds nothing.
# Who is bitten: whoever tries with one short document first; filters by time; versions, phone numbers and codes that look like numbers.
# Do: textFieldMaxLength and autoId: false in the constructor; times as text with a letter in it, such as ISO 8601.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv milvus-lite==3.2.2 pymilvus==3.0.2
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 --legacy-peer-deps --ignore-scripts @langchain/community@1.1.29 @langchain/core@1.4.0 @zilliz/milvus2-sdk-node@3.0.6
venv/bin/python -c "import importlib.metadata as found; print('milvus-lite', found.version('milvus-lite'))" > seen
for package in @langchain/community @zilliz/milvus2-sdk-node; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done >> seen
port=$(python3 -c "import socket; probe = socket.socket(); probe.bind(('127.0.0.1', 0)); print(probe.getsockname()[1])")
venv/bin/milvus-lite server --data-dir data --host 127.0.0.1 --port "$port" > log 2>&1 & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2> /dev/null || ! kill -0 $server; do sleep 0.1; done
cat > program.mjs <<'PROGRAM'
import { Milvus } from '@langchain/community/vectorstores/milvus'
const embeddings = { embedDocuments: async texts => texts.map(() => [1, 0]), embedQuery: async () => [1, 0] }
const open = (collectionName, more) => new Milvus(embeddings, { url: `http://127.0.0.1:${process.argv[2]}`, collectionName, ...more })
let store = open('notes')
const given = { version: '1.10', time: 1732700000123, note: 'x' }
const add = (pageContent, more) => store.addDocuments([{ pageContent, metadata: { ...given, ...more } }], { ids: ['one'] })
const show = async (name, ...filter) => console.log(name, (await store.similaritySearch('tea', 9, ...filter)).map(({ pageContent }) => pageContent).sort())
await add('green tea')
const [{ metadata }] = await store.similaritySearch('tea', 1)
console.log('given', JSON.stringify(given))
console.log('found', JSON.stringify(metadata))
await add('black tea', { note: null })
await show('the same id twice:')
await show('note == "null":', 'note == "null"')
await show('note is null:', 'note is null')
await add('tea with milk').catch(({ message }) => console.log('a longer text:', /VARCHAR.*?max_length=\d+/.exec(message)[0]))
store = open('others', { textFieldMaxLength: 65535, autoId: false })
for (const text of ['tea', 'tea with milk']) await add(text)
await show('with both options:')
process.exit()
PROGRAM
node program.mjs "$port" >> seen
cat seen
diff seen - <<'EXPECTED'
milvus-lite 3.2.2
@langchain/community 1.1.29
@zilliz/milvus2-sdk-node 3.0.6
given {"version":"1.10","time":1732700000123,"note":"x"}
found {"version":1.1,"time":1732700012544,"note":"x"}
the same id twice: [ 'black tea', 'green tea' ]
note == "null": [ 'black tea' ]
note is null: []
a longer text: VARCHAR field 'langchain_text' value length 13 exceeds max_length=9
with both options: [ 'tea with milk' ]
EXPECTED
