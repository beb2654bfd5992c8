#!/usr/bin/env bash
# @langchain/classic 1.0.50, MemoryVectorStore (npm), seen 2026-11-27.
# Expect: a document whose vector is zero has no similarity and comes last. (guess: last, 70 %)
# Happens: its similarity is NaN, and a sort that compares with NaN orders nothing reliably: of six documents, the three
# "nearest" do not include the one that equals the query.
# Who is bitten: embedders that answer zeros for empty text or after a failure; one such document is enough.
# Do: refuse zero vectors before they are stored.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @langchain/core@1.4.0 @langchain/classic@1.0.50
for package in @langchain/core @langchain/classic; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import { MemoryVectorStore } from '@langchain/classic/vectorstores/memory'
const vectors = { same: [1, 0], right: [0, 1], close: [3, 4], empty: [0, 0] }
const vectorOf = text => vectors[text.split(' ')[0]]
const store = new MemoryVectorStore({ embedQuery: async text => vectorOf(text), embedDocuments: async texts => texts.map(vectorOf) })
for (const pageContent of ['empty 1', 'right', 'empty 2', 'same', 'empty 3', 'close']) await store.addDocuments([{ pageContent, metadata: {} }])
const show = hits => hits.map(([document, score]) => `${document.pageContent} ${score}`)
console.log('three nearest:', show(await store.similaritySearchWithScore('same', 3)))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
three nearest: [ 'empty 1 NaN', 'right 0', 'empty 2 NaN' ]
EXPECTED
