#!/usr/bin/env bash
# rank-bm25 0.2.2 and bm25s 0.3.16 (PyPI), seen 2026-11-27.
# Expect: a text that has the word scores above 0 and above one that has not, so `score > 0` means "has it". (guess: yes for all but the
# smallest collections, 60 %; bm25s' default is, 80 %)
# Happens: in BM25Okapi the only document scores below 0, and one of two scores 0. BM25Plus, and bm25s with `bm25l` and `bm25+`, give
# texts without the word a score too. With `robertson` a word of two texts of three scores 0, as the text without it does.
# bm25s always fills up to k, so unknown words return documents.
# Who is bitten: retrievers over one conversation or a few notes, and rank fusion, which sees ranks and no scores.
# Do: keep what shares a word with the query, whatever the score; give rank fusion only those.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv rank-bm25==0.2.2 bm25s==0.3.16
venv/bin/python - > seen 2> errors <<'PROGRAM'
import bm25s, rank_bm25
from importlib.metadata import version
print('rank-bm25', version('rank-bm25'), 'bm25s', version('bm25s'))
texts = ['black coffee', 'coffee milk', 'green tea']
for count in (1, 2, 3):
    some = texts[:1] + texts[2:] if count == 2 else texts[:count]
    words = [text.split() for text in some]
    for name in ('BM25Okapi', 'BM25Plus'):
        print(name, some, [round(float(score), 2) for score in getattr(rank_bm25, name)(words).get_scores(['coffee'])])
def search(word, **options):
    index = bm25s.BM25(**options)
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    found = index.retrieve(bm25s.tokenize([word], show_progress=False), k=3, show_progress=False)
    return [(texts[i], round(float(score), 2)) for score, i in sorted(zip(found.scores[0], found.documents[0]), reverse=True)]
for method in ('lucene', 'bm25l', 'bm25+', 'robertson'):
    print(method, search('coffee', method=method))
print('unknown word', search('zebra'))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
rank-bm25 0.2.2 bm25s 0.3.16
BM25Okapi ['black coffee'] [-0.27]
BM25Plus ['black coffee'] [1.39]
BM25Okapi ['black coffee', 'green tea'] [0.0, 0.0]
BM25Plus ['black coffee', 'green tea'] [2.2, 1.1]
BM25Okapi ['black coffee', 'coffee milk', 'green tea'] [0.08, 0.08, 0.0]
BM25Plus ['black coffee', 'coffee milk', 'green tea'] [1.39, 1.39, 0.69]
lucene [('coffee milk', 0.19), ('black coffee', 0.19), ('green tea', 0.0)]
bm25l [('coffee milk', 0.59), ('black coffee', 0.59), ('green tea', 0.29)]
bm25+ [('coffee milk', 1.04), ('black coffee', 1.04), ('green tea', 0.35)]
robertson [('green tea', 0.0), ('coffee milk', 0.0), ('black coffee', 0.0)]
unknown word [('green tea', 0.0), ('coffee milk', 0.0), ('black coffee', 0.0)]
EXPECTED
