#!/usr/bin/env bash
# chrono-node 2.10.3 (npm), seen 2026-11-27. The day is Friday, 27 November 2026.
# Expect: an expression that a language module does not know gives no result. (guess: none, 70 %)
# Happens: it finds the shorter expression inside and answers a wrong day with confidence: French avant-hier (the 25th) is
# yesterday, après-demain (the 29th) tomorrow; likewise in Spanish, Portuguese, Italian, Japanese, and English without "the".
# Who is bitten: "when did I say that?" in assistants: the window of the search is a day off, and nothing shows it.
# Do: compare the matched text with the whole expression, and refuse a match that is only a part of a word or phrase.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 chrono-node@2.10.3
for package in chrono-node; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
node --input-type=module - > seen <<'PROGRAM'
import * as chrono from 'chrono-node'
const now = new Date(2026, 10, 27, 12)
const seen = (language, text) => console.log(language, text, '->', ...chrono[language].casual.parse(text, now).map(hit => `"${hit.text}" ${hit.start.date().getDate()}`))
seen('en', 'the day before yesterday')
seen('en', 'day before yesterday')
seen('en', 'day after tomorrow')
seen('fr', 'avant-hier')
seen('fr', 'après-demain')
seen('es', 'antes de ayer')
seen('es', 'pasado mañana')
seen('pt', 'depois de amanhã')
seen('it', "l'altro ieri")
seen('ja', '一昨日')
seen('de', 'vorgestern')
seen('de', 'morgen früh')
PROGRAM
cat seen
diff seen - <<'EXPECTED'
en the day before yesterday -> "the day before yesterday" 25
en day before yesterday -> "yesterday" 26
en day after tomorrow -> "tomorrow" 28
fr avant-hier -> "hier" 26
fr après-demain -> "demain" 28
es antes de ayer -> "ayer" 26
es pasado mañana -> "mañana" 28
pt depois de amanhã -> "amanhã" 28
it l'altro ieri -> "ieri" 26
ja 一昨日 -> "昨日" 26
de vorgestern -> "vorgestern" 25
de morgen früh -> "morgen" 28 "fr" 27
EXPECTED
