#!/usr/bin/env bash
# @langchain/community 1.1.29 (npm), its PDF loader's metadata in its Chroma store, seen 2026-11-27.
# Expect: metadata that Chroma takes are stored, others raise. (guess: `loc` is flattened and something of it is lost, 65 %)
# Happens: `loc`, where LangChain's own loaders and splitters put the place of a text, is replaced by locFrom and locTo, its lines. All else in it
# is dropped without a word: the page number of a PDF. Other nested metadata raise. A first line 0 is stored and not restored.
# Who is bitten: citations with a page after PDFLoader and a splitter, as the documentation chains them.
# Do: copy metadata.loc.pageNumber to a key of its own before adding.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 --legacy-peer-deps --ignore-scripts @langchain/community@1.1.29 @langchain/core@1.4.0 @langchain/textsplitters@1.0.1 chromadb@3.5.0
for package in @langchain/community; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
cat > program.mjs <<'PROGRAM'
import { Chroma } from '@langchain/community/vectorstores/chroma'
import { RecursiveCharacterTextSplitter } from '@langchain/textsplitters'
// What PDFLoader gives for page 3 of a file.
const page = { pageContent: 'tea\n\ncake', metadata: { source: 'a.pdf', loc: { pageNumber: 3 } } }
const documents = await new RecursiveCharacterTextSplitter({ chunkSize: 5, chunkOverlap: 0 }).splitDocuments([page])
let stored
const store = new Chroma({ embedDocuments: async texts => texts.map(() => [1, 0]) }, { collectionName: 'notes', index: {} })
store.collection = {
  upsert: async records => { stored = records },
  query: async () => ({ ids: [stored.ids], distances: [stored.ids.map(() => 0)], documents: [stored.documents], metadatas: [stored.metadatas] }),
}
await store.addDocuments(documents)
const found = await store.similaritySearchVectorWithScore([1, 0], 9)
for (const [at, { metadata }] of documents.entries()) console.log('given', JSON.stringify(metadata.loc), '| found', JSON.stringify(found[at][0].metadata))
PROGRAM
node program.mjs >> seen
cat seen
diff seen - <<'EXPECTED'
@langchain/community 1.1.29
given {"pageNumber":3,"lines":{"from":1,"to":1}} | found {"source":"a.pdf","loc":{"lines":{"from":1,"to":1}}}
given {"pageNumber":3,"lines":{"from":3,"to":3}} | found {"source":"a.pdf","loc":{"lines":{"from":3,"to":3}}}
EXPECTED
