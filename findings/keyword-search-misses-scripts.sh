#!/usr/bin/env bash
# bm25s 0.3.16 (PyPI); minisearch 7.2.0, @orama/orama 3.1.18, flexsearch 0.8.212, lunr 2.3.9 (npm), all as they come, seen 2026-11-27.
# Expect: a word that stands in a text between spaces is found by itself, in each script. (guess: yes, 70 %; Chinese and Thai, which
# have no spaces, are found in none, 80 %)
# Happens: Orama keeps Latin letters only: Russian, Greek, Hindi and Korean texts are in the index and never found. bm25s cuts Hindi at
# its vowel signs and drops what is left, one letter each: nothing remains. lunr cuts the last accent off the text ("caf") and not
# off the query, so "café" does not find "café" while "naïve" is found. flexsearch finds "7" in 1234567 and not "345" in 12345.
# Who is bitten: everybody whose users do not write English: the vector half of a hybrid search hides the loss.
# Do: give each library a tokenizer of your own (Intl.Segmenter, /\p{L}+/u), the same for text and query.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv bm25s==0.3.16
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 minisearch@7.2.0 @orama/orama@3.1.18 flexsearch@0.8.212 lunr@2.3.9
for package in minisearch @orama/orama flexsearch lunr; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > cases.json <<'CASES'
[["черный кофе", "кофе"], ["μαύρος καφές", "καφές"], ["हिन्दी में कॉफ़ी", "कॉफ़ी"], ["검은 커피", "커피"], ["我喜欢咖啡和茶", "咖啡"], ["ฉันชอบกาแฟ", "กาแฟ"], ["petit café", "café"], ["naïve idée", "naïve"], ["room 1234567", "7"], ["version 12345", "345"]]
CASES
cat > program.mjs <<'PROGRAM'
import MiniSearch from 'minisearch'
import { create, insert, search } from '@orama/orama'
import flexsearch from 'flexsearch'
import lunr from 'lunr'
import { readFileSync } from 'node:fs'
for (const [text, word] of JSON.parse(readFileSync('cases.json', 'utf8'))) {
  const mini = new MiniSearch({ fields: ['text'] }); mini.add({ id: 1, text })
  const orama = create({ schema: { text: 'string' } }); await insert(orama, { text })
  const flex = new flexsearch.Index(); flex.add(1, text)
  const index = lunr(function () { this.ref('id'); this.field('text'); this.add({ id: 1, text }) })
  const found = { minisearch: mini.search(word).length, orama: (await search(orama, { term: word })).count, flexsearch: flex.search(word).length, lunr: index.search(word).length }
  console.log(Object.entries(found).map(([name, count]) => `${name} ${count ? 'yes' : 'NO'}`).join(', '))
}
PROGRAM
venv/bin/python - > python.txt 2> python.err <<'PROGRAM'
import bm25s, json
for text, word in json.load(open('cases.json')):
    words = [bm25s.tokenize([t], show_progress=False).vocab.keys() for t in (text, word)]
    print(text, '|', word, '| bm25s', 'yes,' if set(words[0]) & set(words[1]) else 'NO,')
PROGRAM
node program.mjs | paste -d ' ' python.txt - > seen
cat seen
diff seen - <<'EXPECTED'
черный кофе | кофе | bm25s yes, minisearch yes, orama NO, flexsearch yes, lunr NO
μαύρος καφές | καφές | bm25s yes, minisearch yes, orama NO, flexsearch yes, lunr NO
हिन्दी में कॉफ़ी | कॉफ़ी | bm25s NO, minisearch yes, orama NO, flexsearch yes, lunr NO
검은 커피 | 커피 | bm25s yes, minisearch yes, orama NO, flexsearch yes, lunr NO
我喜欢咖啡和茶 | 咖啡 | bm25s NO, minisearch NO, orama NO, flexsearch NO, lunr NO
ฉันชอบกาแฟ | กาแฟ | bm25s NO, minisearch NO, orama NO, flexsearch NO, lunr NO
petit café | café | bm25s yes, minisearch yes, orama yes, flexsearch yes, lunr NO
naïve idée | naïve | bm25s yes, minisearch yes, orama yes, flexsearch yes, lunr yes
room 1234567 | 7 | bm25s NO, minisearch NO, orama NO, flexsearch yes, lunr NO
version 12345 | 345 | bm25s NO, minisearch NO, orama NO, flexsearch NO, lunr NO
EXPECTED
