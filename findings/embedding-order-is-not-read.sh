#!/usr/bin/env bash
# openai 6.49.0, @langchain/openai 1.6.0, ai 6.0.326 with @ai-sdk/openai-compatible 2.0.92 (npm), langchain-openai 1.7.4, mem0ai 2.2.1 (PyPI),
# against a stand-in on loopback, seen 2026-11-27.
# Expect: vectors are put in the order of the texts by the `index` that each carries; a missing one is an error. (guess: the clients do
# not sort, 80 %; LangChain and AI SDK do, 20 %; too few are an error, 40 %)
# Happens: of the four libraries above the client only mem0 reads `index`. The others take the order of the answer: each text gets the vector of
# another. With one vector for two texts, AI SDK and LangChain for Python return one, silently. openai 6.49, the newest for Node 20, reads
# an answer in numbers as bytes, since it asked for base64: two numbers become none, 768 become 192, and it raises nothing.
# Who is bitten: self-hosted embedding servers and proxies that answer in the order of their workers, or without base64.
# Do: compare the count, sort by `index`, check the length of each vector; pass encoding_format: 'float'.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-openai==1.7.4 mem0ai==2.2.1
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 openai@6.49.0 @langchain/core@1.4.0 @langchain/openai@1.6.0 ai@6.0.326 @ai-sdk/openai-compatible@2.0.92 zod@4 --legacy-peer-deps
for package in openai @langchain/openai ai; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > program.mjs <<'PROGRAM'
import http from 'node:http'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { OpenAIEmbeddings } from '@langchain/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embedMany } from 'ai'
let answer
const server = http.createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const data = answer(JSON.parse(body).input.map((text, index) => ({ object: 'embedding', index, embedding: [text.length, 1] })))
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data, model: 'm', usage: { prompt_tokens: 1, total_tokens: 1 } }))
}).listen(0, '127.0.0.1', async () => {
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`, input = ['a', 'bbb'], apiKey = 'none'
  const python = (line, call) => promisify(execFile)('venv/bin/python', ['-c', `import json, sys\n${line}\nprint(json.dumps(${call}(['a', 'bbb'])))`, baseURL]).then(({ stdout }) => JSON.parse(stdout))
  const libraries = {
    openai: async () => (await new OpenAI({ apiKey, baseURL }).embeddings.create({ model: 'm', input })).data.map(row => row.embedding),
    'LangChain.js': () => new OpenAIEmbeddings({ apiKey, model: 'm', configuration: { baseURL }, maxRetries: 0 }).embedDocuments(input),
    'AI SDK': async () => (await embedMany({ model: createOpenAICompatible({ name: 'x', baseURL }).embeddingModel('m'), values: input })).embeddings,
    LangChain: () => python('from langchain_openai import OpenAIEmbeddings', "OpenAIEmbeddings(base_url=sys.argv[1], api_key='none', model='m', check_embedding_ctx_length=False).embed_documents"),
    mem0: () => python('from mem0.embeddings.openai import *', "OpenAIEmbedding(BaseEmbedderConfig(model='m', api_key='none', openai_base_url=sys.argv[1], embedding_dims=2)).embed_batch"),
  }
  for (const [label, form] of Object.entries({ 'other order': rows => rows.reverse(), 'one of two': rows => rows.slice(0, 1) })) {
    answer = form
    for (const [name, embed] of Object.entries(libraries)) console.log(label, '|', name, '|', await embed().then(JSON.stringify, () => 'an error'))
  }
  process.exit(0)
})
PROGRAM
MEM0_TELEMETRY=false MEM0_DIR="$folder" node program.mjs > seen
cat seen
diff seen - <<'EXPECTED'
other order | openai | [[],[]]
other order | LangChain.js | [[3,1],[1,1]]
other order | AI SDK | [[3,1],[1,1]]
other order | LangChain | [[3,1],[1,1]]
other order | mem0 | [[1,1],[3,1]]
one of two | openai | [[]]
one of two | LangChain.js | an error
one of two | AI SDK | [[1,1]]
one of two | LangChain | [[1,1]]
one of two | mem0 | an error
EXPECTED
