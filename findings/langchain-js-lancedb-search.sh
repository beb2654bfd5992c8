#!/usr/bin/env bash
# @langchain/community 1.1.29 with @lancedb/lancedb 0.31.0 (npm), seen 2026-11-27.
# Expect: similaritySearchWithScore(query, k, filter) returns documents that pass the filter, each with a number. (guess: the number is missing, 70 %; the
# filter is ignored, 80 %)
# Happens: the filter is not looked at in any form, so that the documents of all are returned. The score is undefined, and the distance is a key of the
# metadata, `_distance`. A second fromDocuments on the same table replaces it.
# Who is bitten: one table for several users; thresholds, since `undefined < 0.5` is false; hits that are stored again, with `_distance`.
# Do: a table for each user, or LanceDB's own client; metadata._distance for the score; addDocuments on an opened table.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 --legacy-peer-deps --ignore-scripts @langchain/community@1.1.29 @langchain/core@1.4.0 @lancedb/lancedb@0.31.0 apache-arrow@18.1.0
for package in @langchain/community; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
cat > program.mjs <<'PROGRAM'
import { LanceDB } from '@langchain/community/vectorstores/lancedb'
const vectors = { tea: [1, 0], milk: [0, 1] }
const embeddings = { embedDocuments: async texts => texts.map(text => vectors[text]), embedQuery: async text => vectors[text] }
const place = { uri: 'data', tableName: 'notes' }
const store = await LanceDB.fromDocuments([{ pageContent: 'tea', metadata: { user: 'ana' } }, { pageContent: 'milk', metadata: { user: 'ben' } }], embeddings, place)
for (const filter of [{ user: 'ben' }, "user = 'ben'", row => row.user === 'ben']) {
  console.log(String(JSON.stringify(filter)), JSON.stringify((await store.similaritySearchWithScore('tea', 2, filter)).map(([{ pageContent, metadata }, score]) => [pageContent, metadata, `${score}`])))
}
const again = await LanceDB.fromDocuments([{ pageContent: 'milk', metadata: { user: 'ben' } }], embeddings, place)
console.log('after a second fromDocuments:', (await again.similaritySearch('tea', 9)).map(({ pageContent }) => pageContent).join())
PROGRAM
node program.mjs >> seen
cat seen
diff seen - <<'EXPECTED'
@langchain/community 1.1.29
{"user":"ben"} [["tea",{"user":"ana","_distance":0},"undefined"],["milk",{"user":"ben","_distance":2},"undefined"]]
"user = 'ben'" [["tea",{"user":"ana","_distance":0},"undefined"],["milk",{"user":"ben","_distance":2},"undefined"]]
undefined [["tea",{"user":"ana","_distance":0},"undefined"],["milk",{"user":"ben","_distance":2},"undefined"]]
after a second fromDocuments: milk
EXPECTED
