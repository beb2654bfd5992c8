#!/usr/bin/env bash
# langchain-qdrant 1.1.0 with qdrant-client 1.20.0 (PyPI), @langchain/qdrant 1.0.3 (npm), seen 2026-11-27.
# Expect: LangChain for Python and for JavaScript read each other's collections of Qdrant. (guess: they do not, and raise or show nothing, 60 %)
# Happens: Python keeps the text under `page_content`, JavaScript under `content`. Each finds the documents of the other, with score
# and metadata, and gives them an empty text, without a word. Written by both, a collection answers half of the hits empty.
# Who is bitten: an ingestion in Python behind an application in JavaScript: the model is given empty context.
# Do: content_payload_key="content" in Python, or contentPayloadKey: 'page_content' in JavaScript.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-qdrant==1.1.0 qdrant-client==1.20.0
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 --legacy-peer-deps @langchain/qdrant@1.0.3 @langchain/core@1.4.0 @qdrant/js-client-rest@1.18.0
for package in @langchain/qdrant; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
cat > program.py <<'PROGRAM'
import json, warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models
class Fixed(Embeddings):
    def embed_documents(self, texts): return [[1.0, 0.0] for _ in texts]
    def embed_query(self, text): return [1.0, 0.0]
client = QdrantClient(':memory:')
client.create_collection('notes', vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
store = QdrantVectorStore(client, 'notes', Fixed())
client.upsert('notes', [models.PointStruct(**point) for point in json.load(open('javascript.json'))])
print('langchain-qdrant', version('langchain-qdrant'))
[hit] = store.similarity_search('tea')
print('Python reads what JavaScript wrote:', repr(hit.page_content), hit.metadata['topic'])
client.delete('notes', models.Filter())
store.add_texts(['tea'], metadatas=[{'topic': 'food'}])
json.dump([{'id': point.id, 'payload': point.payload, 'score': 1} for point in client.scroll('notes')[0]], open('python.json', 'w'))
PROGRAM
cat > program.mjs <<'PROGRAM'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { QdrantVectorStore } from '@langchain/qdrant'
// In place of a server: what is written goes to a file, and the search finds the points of the other.
const client = { getCollections: async () => ({ collections: [{ name: 'notes' }] }),
  upsert: async (_, { points }) => writeFileSync('javascript.json', JSON.stringify(points)),
  query: async () => ({ points: JSON.parse(readFileSync('python.json')) }) }
const embeddings = { embedDocuments: async texts => texts.map(() => [1, 0]), embedQuery: async () => [1, 0] }
const store = new QdrantVectorStore(embeddings, { client, collectionName: 'notes' })
if (existsSync('python.json')) {
  const [{ pageContent, metadata }] = await store.similaritySearch('tea')
  console.log('JavaScript reads what Python wrote:', JSON.stringify(pageContent), metadata.topic)
} else await store.addDocuments([{ pageContent: 'tea', metadata: { topic: 'food' } }])
PROGRAM
node program.mjs && venv/bin/python program.py >> seen && node program.mjs >> seen
cat seen
diff seen - <<'EXPECTED'
@langchain/qdrant 1.0.3
langchain-qdrant 1.1.0
Python reads what JavaScript wrote: '' food
JavaScript reads what Python wrote: "" food
EXPECTED
