#!/usr/bin/env bash
# flexsearch 0.8.212 (npm), seen 2026-11-28.
# Expect: an index as it comes finds the texts that hold the word of the query. (guess: '100' finds only 100, 75 %; 123456 does not find 456123, 80 %)
# Happens: the encoder joins equal letters that follow each other and cuts numbers into groups of three whose order does not count. 100 finds 10, 1000
# and a million, 5 finds 55, 123456 finds 456123 first, a date finds the same numbers in another order, and hop finds hoop.
# Who is bitten: notes with amounts, order numbers, years and dates: other numbers come as exact hits, and some before the right one.
# Do: new Index({ encoder: new Encoder({ dedupe: false, numeric: false }) }).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 flexsearch@0.8.212
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs'
import flexsearch from 'flexsearch'
const texts = ['order 10', 'order 100', 'order 1000', 'order 1000000', 'order 456123', 'order 123456', 'room 55', 'room 5', 'on 11-28-2026', 'on 2026-11-28', 'a hoop', 'to hop']
const asItComes = new flexsearch.Index(), exact = new flexsearch.Index({ encoder: new flexsearch.Encoder({ dedupe: false, numeric: false }) })
for (const [id, text] of texts.entries()) for (const index of [asItComes, exact]) index.add(id, text)
console.log('flexsearch', JSON.parse(readFileSync('node_modules/flexsearch/package.json')).version)
for (const query of ['100', '1000000', '123456', '5', '2026-11-28', 'hop']) {
  const [found, right] = [asItComes, exact].map(index => index.search(query).map(id => texts[id]).join(', '))
  console.log(query, '|', found, '| told otherwise:', right)
}
PROGRAM
node program.mjs > seen
cat seen
diff seen - <<'EXPECTED'
flexsearch 0.8.212
100 | order 10, order 100, order 1000, order 1000000 | told otherwise: order 100
1000000 | order 1000, order 1000000 | told otherwise: order 1000000
123456 | order 456123, order 123456 | told otherwise: order 123456
5 | room 55, room 5 | told otherwise: room 5
2026-11-28 | on 11-28-2026, on 2026-11-28 | told otherwise: on 11-28-2026, on 2026-11-28
hop | a hoop, to hop | told otherwise: to hop
EXPECTED
