#!/usr/bin/env bash
# snowballstemmer 2.2.0 and 3.1.1 (PyPI), snowball-stemmers 0.6.0 and stemmer 2.0.1 (npm), seen 2026-11-27.
# Expect: the English stemmer gives the stems it has given for twenty years. (guess: one or two words differ, 70 %)
# Happens: version 3 has other rules: university no longer meets universe, paste no longer past; German changes too. The
# npm ports keep the old rules or older ones (news: new). With PyStemmer installed, its version decides, without a word.
# Who is bitten: a stored keyword index (BM25) after an upgrade, or one made in Python and asked from JavaScript.
# Do: keep the stemmer's version with the index, and rebuild when it changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv snowballstemmer==3.1.1
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 snowball-stemmers@0.6.0 stemmer@2.0.1
for package in snowball-stemmers stemmer; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --python venv --target old snowballstemmer==2.2.0
venv/bin/python - > seen <<'PROGRAM'
import importlib, json, subprocess, sys
words = ['university', 'organization', 'paste', 'emergency', 'evening', 'news']
def stems():
    for name in [name for name in sys.modules if name.startswith('snowballstemmer')]: del sys.modules[name]
    snowball = importlib.import_module('snowballstemmer')
    return [snowball.stemmer('english').stemWord(word) for word in words], [snowball.stemmer('german').stemWord(word) for word in ('system', 'maedchen')]
new = stems()
sys.path.insert(0, 'old')
old = stems()
program = '''
import snowball from 'snowball-stemmers'
import { stemmer } from 'stemmer'
const words = JSON.parse(process.argv[1])
console.log(JSON.stringify([words.map(word => snowball.newStemmer('english').stem(word)), words.map(word => stemmer(word))]))
'''
port, porter = json.loads(subprocess.run(['node', '--input-type=module', '-e', program, json.dumps(words)], check=True, capture_output=True, text=True).stdout)
print('word: 2.2.0, 3.1.1, snowball-stemmers, stemmer')
for row in zip(words, old[0], new[0], port, porter):
    print(row[0] + ':', ', '.join(row[1:]))
print('German system, maedchen:', old[1], new[1])
PROGRAM
cat seen
diff seen - <<'EXPECTED'
word: 2.2.0, 3.1.1, snowball-stemmers, stemmer
university: univers, universiti, univers, univers
organization: organ, organiz, organ, organ
paste: past, paste, past, past
emergency: emerg, emergenc, emerg, emerg
evening: even, evening, even, even
news: news, news, news, new
German system, maedchen: ['syst', 'maedch'] ['system', 'madch']
EXPECTED
