#!/usr/bin/env bash
# langchain-community 0.4.2, langchain-classic 1.0.8, rank-bm25 0.2.2 (PyPI), @langchain/community 1.1.29, @langchain/classic 1.0.50 (npm), seen 2026-11-28.
# Expect: BM25Retriever finds words without regard to case and punctuation, and the same in both languages. EnsembleRetriever keeps documents of one text that
# differ in their metadata. (guess: case counts in Python, 50 %; the same in both languages, 60 %; documents of one text are merged, 60 %)
# Happens: Python splits at spaces alone, so "tea" finds neither "Tea" nor "tea."; JavaScript makes the query lower case and not the documents, so a word with
# a capital letter is never found, and counts parts of words: "te" in "water". Without a match k documents come all the same, in Python the last first.
# EnsembleRetriever takes equal texts for one document: of two users' notes one is lost, in both languages.
# Who is bitten: hybrid search: names, the first word of a sentence, all nouns of German; notes like "ok" of several users.
# Do: preprocess_func in Python; in JavaScript lower-case texts; an id_key for the ensemble in Python, and filter by user before, never after.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv langchain-community==0.4.2 langchain-classic==1.0.8 langchain-core==1.8.3 rank-bm25==0.2.2
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 --legacy-peer-deps @langchain/community@1.1.29 @langchain/classic@1.0.50 @langchain/core@1.4.0
for package in @langchain/community @langchain/classic; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
echo '[["Green Tea", "ana"], ["Green Tea", "bob"], ["black coffee", "ana"], ["water, tea.", "bob"], ["milk", "ana"]]' > texts.json
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs'
import { EnsembleRetriever } from '@langchain/classic/retrievers/ensemble'
import { BM25Retriever } from '@langchain/community/retrievers/bm25'
const words = BM25Retriever.fromDocuments(JSON.parse(readFileSync('texts.json')).map(([pageContent, user]) => ({ pageContent, metadata: { user } })), { k: 3, includeScore: true })
const show = (label, hits) => console.log('JavaScript', label, '|', hits.map(hit => `${hit.pageContent} (${hit.metadata.user})`).join('; '))
for (const query of ['tea', 'Tea', 'Green', 'te', 'nothing']) {
  const hits = await words.invoke(query)
  show(`${query}, ${hits.filter(hit => hit.metadata.bm25Score === 0).length} without a match, and`, hits.filter(hit => hit.metadata.bm25Score > 0))
}
show('ensemble Tea', await new EnsembleRetriever({ retrievers: [words, words], weights: [0.5, 0.5] }).invoke('Tea'))
PROGRAM
node program.mjs >> seen
venv/bin/python - >> seen 2> errors <<'PROGRAM'
import json
from importlib.metadata import version
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
for name in ('langchain-community', 'langchain-classic'): print(name, version(name))
words = BM25Retriever.from_documents([Document(page_content=text, metadata={'user': user}) for text, user in json.load(open('texts.json'))], k=3)
show = lambda label, hits: print('Python', label, '|', '; '.join(f'{hit.page_content} ({hit.metadata["user"]})' for hit in hits))
for query in ('tea', 'Tea', 'tea.', 'nothing'): show(query, words.invoke(query))
show('ensemble Tea', EnsembleRetriever(retrievers=[words, words], weights=[0.5, 0.5]).invoke('Tea'))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
@langchain/community 1.1.29
@langchain/classic 1.0.50
JavaScript tea, 2 without a match, and | water, tea. (bob)
JavaScript Tea, 2 without a match, and | water, tea. (bob)
JavaScript Green, 3 without a match, and | 
JavaScript te, 2 without a match, and | water, tea. (bob)
JavaScript nothing, 3 without a match, and | 
JavaScript ensemble Tea | Green Tea (ana); water, tea. (bob)
langchain-community 0.4.2
langchain-classic 1.0.8
Python tea | milk (ana); water, tea. (bob); black coffee (ana)
Python Tea | Green Tea (ana); Green Tea (bob); milk (ana)
Python tea. | water, tea. (bob); milk (ana); black coffee (ana)
Python nothing | milk (ana); water, tea. (bob); black coffee (ana)
Python ensemble Tea | Green Tea (ana); milk (ana)
EXPECTED
