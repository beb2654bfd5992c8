#!/usr/bin/env bash
# @mastra/libsql 1.23.1 with @mastra/core 1.71.0 (npm), LibSQLVector, seen 2026-11-28.
# Expect: a Date in a filter is compared with the stored time, as its type allows and `metadata` takes one; an unknown metric is refused.
# (guess: $gt works, 80 %; $eq, 70 %; that { at: date } finds all, and the metric, were seen before a guess)
# Happens: metadata hold the time as a text. { at: date } is dropped as a condition without keys, so it finds everything; $eq and $in find nothing; $gt and
# $ne find every record that has a time, also an earlier one. `metric: 'dotproduct'` is taken, and the cosine is measured.
# Who is bitten: "since last week" in an agent's memory returns all of it, and a filter of one condition is no filter.
# Do: date.toISOString() in filters, numbers for times, and cosine only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @mastra/core@1.71.0 @mastra/libsql@1.23.1
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs'
import { LibSQLVector } from '@mastra/libsql'
console.log('@mastra/libsql', JSON.parse(readFileSync('node_modules/@mastra/libsql/package.json')).version)
const store = new LibSQLVector({ id: 'notes', url: 'file:notes.db' }), date = new Date('2026-02-01')
await store.createIndex({ indexName: 'notes', dimension: 2, metric: 'dotproduct' })
await store.upsert({ indexName: 'notes', ids: ['january', 'march', 'no time'], vectors: [[1, 0], [9, 9], [1, 2]], metadata: [{ at: new Date('2026-01-01') }, { at: new Date('2026-03-01') }, {}] })
const search = async (label, filter) => {
  const hits = await store.query({ indexName: 'notes', queryVector: [1, 0], topK: 9, filter })
  console.log(label, '|', hits.map(hit => `${hit.id} ${hit.score.toFixed(2)}`).join(', '))
}
await search('no filter', undefined)
for (const [label, value] of [['{ at: date }', date], ['$eq', { $eq: new Date('2026-01-01') }], ['$in', { $in: [new Date('2026-01-01')] }], ['$gt', { $gt: date }], ['$lt', { $lt: date }], ['$ne', { $ne: new Date('2026-01-01') }]]) await search(label, { at: value })
await search('$gt as ISO text', { at: { $gt: date.toISOString() } })
console.log('metric:', (await store.describeIndex({ indexName: 'notes' })).metric)
PROGRAM
node program.mjs > seen
cat seen
diff seen - <<'EXPECTED'
@mastra/libsql 1.23.1
no filter | january 1.00, march 0.71, no time 0.45
{ at: date } | january 1.00, march 0.71, no time 0.45
$eq | 
$in | 
$gt | january 1.00, march 0.71
$lt | 
$ne | january 1.00, march 0.71
$gt as ISO text | march 0.71
metric: cosine
EXPECTED
