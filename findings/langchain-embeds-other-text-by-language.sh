#!/usr/bin/env bash
# @langchain/openai 1.6.0 (npm), langchain-openai 1.7.4 and mem0ai 2.2.1 (PyPI), against a stand-in on loopback, seen 2026-11-27.
# Expect: the text that is stored is the text that is embedded, in each language. (guess: JavaScript strips line breaks, 60 %; Python does, 35 %)
# Happens: LangChain.js and mem0 replace each line break by a space before they ask for the vector, LangChain for Python does not. So the
# same document has two vectors, and a question asked in the one language is compared with documents of the other.
# Who is bitten: code, lists, poems and chat logs in one table, written from Python and read from JavaScript; caches by text.
# Do: stripNewLines: false in LangChain.js; the same preparation of text on both sides.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-openai==1.7.4 mem0ai==2.2.1
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @langchain/core@1.4.0 @langchain/openai@1.6.0
for package in @langchain/openai; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > program.mjs <<'PROGRAM'
import http from 'node:http'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { OpenAIEmbeddings } from '@langchain/openai'
let asked
const server = http.createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  asked = JSON.parse(body).input
  const data = [].concat(asked).map((_, index) => ({ object: 'embedding', index, embedding: Buffer.from(new Float32Array([1, 0]).buffer).toString('base64') }))
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data, model: 'm', usage: { prompt_tokens: 1, total_tokens: 1 } }))
}).listen(0, '127.0.0.1', async () => {
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`
  const show = name => console.log(name, '|', JSON.stringify([].concat(asked)))
  const model = more => new OpenAIEmbeddings({ apiKey: 'none', model: 'm', configuration: { baseURL }, ...more })
  await model().embedDocuments(['- tea\n- milk']); show('LangChain.js document')
  await model().embedQuery('- tea\n- milk'); show('LangChain.js query')
  await model({ stripNewLines: false }).embedQuery('- tea\n- milk'); show('LangChain.js with stripNewLines: false')
  for (const library of ['LangChain', 'mem0']) { await once(spawn('venv/bin/python', ['program.py', library, baseURL], { stdio: 'inherit' }), 'exit'); show(library) }
  process.exit(0)
})
PROGRAM
cat > program.py <<'PROGRAM'
import sys
if sys.argv[1] == 'LangChain':
    from langchain_openai import OpenAIEmbeddings
    OpenAIEmbeddings(base_url=sys.argv[2], api_key='none', model='m', check_embedding_ctx_length=False).embed_documents(['- tea\n- milk'])
else:
    from mem0.embeddings.openai import BaseEmbedderConfig, OpenAIEmbedding
    OpenAIEmbedding(BaseEmbedderConfig(model='m', api_key='none', openai_base_url=sys.argv[2], embedding_dims=2)).embed('- tea\n- milk')
PROGRAM
MEM0_TELEMETRY=false MEM0_DIR="$folder" node program.mjs > seen
cat seen
diff seen - <<'EXPECTED'
LangChain.js document | ["- tea - milk"]
LangChain.js query | ["- tea - milk"]
LangChain.js with stripNewLines: false | ["- tea\n- milk"]
LangChain | ["- tea\n- milk"]
mem0 | ["- tea - milk"]
EXPECTED
