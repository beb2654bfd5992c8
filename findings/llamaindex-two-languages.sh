#!/usr/bin/env bash
# llama-index-vector-stores-qdrant 0.10.4 with llama-index-core 0.14.25 (PyPI), @llamaindex/qdrant 0.1.33 with llamaindex 0.12.1 (npm), seen 2026-11-27.
# Expect: LlamaIndex for Python and for TypeScript, which write the same fields (`_node_content`, `doc_id`), read each other's nodes. (guess: yes, 60 %)
# Happens: the text arrives, the rest does not. Python shows a node of TypeScript without any metadata, though a filter finds it by them,
# since TypeScript leaves them out of `_node_content`. TypeScript forgets Python's `excluded_llm_metadata_keys`, so what was kept from the model is in its prompt.
# Who is bitten: citations by `node.metadata` after an ingestion in the other language; hidden keys (paths, customers) in prompts.
# Do: read and write a collection in one language; set the excluded keys again after a search.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv llama-index-core==0.14.25 llama-index-vector-stores-qdrant==0.10.4 qdrant-client==1.20.0
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 --legacy-peer-deps --ignore-scripts @llamaindex/qdrant@0.1.33 llamaindex@0.12.1
for package in @llamaindex/qdrant; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
cat > program.py <<'PROGRAM'
import json, warnings
warnings.simplefilter('ignore')
from importlib.metadata import version
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters, VectorStoreQuery
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models
client = QdrantClient(':memory:')
store = QdrantVectorStore('notes', client)
store.add([TextNode(text='tea', metadata={'topic': 'food', 'path': '/secret'}, excluded_llm_metadata_keys=['path'], embedding=[1.0, 0.0])])
json.dump([{'id': point.id, 'payload': point.payload, 'score': 1} for point in client.scroll('notes')[0]], open('python.json', 'w'))
def show(who):
    filters = MetadataFilters(filters=[ExactMatchFilter(key='topic', value='food')])
    [node] = store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=3, filters=filters)).nodes
    print('Python reads', who, sorted(node.metadata), '| the path is in the prompt:', '/secret' in node.get_content(MetadataMode.LLM))
print('llama-index-vector-stores-qdrant', version('llama-index-vector-stores-qdrant'))
show('Python')
client.delete('notes', models.Filter())
client.upsert('notes', [models.PointStruct(**point) for point in json.load(open('typescript.json'))])
show('TypeScript')
PROGRAM
cat > program.mjs <<'PROGRAM'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { TextNode } from 'llamaindex'
import { QdrantVectorStore } from '@llamaindex/qdrant'
// In place of a server: what is written goes to a file, and the search finds the points of the other.
const client = { getCollection: async () => ({}), upsert: async (_, { points }) => writeFileSync('typescript.json', JSON.stringify(points)),
  query: async () => ({ points: JSON.parse(readFileSync('python.json')) }) }
const store = new QdrantVectorStore({ client, collectionName: 'notes', embedModel: {} })
if (existsSync('python.json')) {
  const { nodes: [node] } = await store.query({ queryEmbedding: [1, 0], similarityTopK: 3, mode: 'default' })
  console.log('TypeScript reads Python', Object.keys(node.metadata).sort(), '| the path is in the prompt:', node.getContent('LLM').includes('/secret'))
} else await store.add([new TextNode({ text: 'tea', metadata: { topic: 'food', path: '/secret' }, excludedLlmMetadataKeys: ['path'], embedding: [1, 0] })])
PROGRAM
node program.mjs && venv/bin/python program.py >> seen && node program.mjs >> seen
cat seen
diff seen - <<'EXPECTED'
@llamaindex/qdrant 0.1.33
llama-index-vector-stores-qdrant 0.10.4
Python reads Python ['path', 'topic'] | the path is in the prompt: False
Python reads TypeScript [] | the path is in the prompt: False
TypeScript reads Python [ 'path', 'topic' ] | the path is in the prompt: true
EXPECTED
