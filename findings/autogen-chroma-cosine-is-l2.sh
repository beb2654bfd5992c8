#!/usr/bin/env bash
# autogen-ext 0.7.5 and autogen-core 0.7.5 with chromadb 1.5.9 (PyPI), ChromaDBVectorMemory, seen 2026-11-28.
# Expect: distance_metric="cosine", the default, makes a collection of Chroma that measures so, and an entry comes back as it was added. (guess: 90 %, after a look at its source)
# Happens: the setting goes into the collection's metadata under a name that Chroma does not read, so that it measures by squared L2, whatever is set. Only
# the score is calculated as if it were cosine: it falls to -31, and the vector of the same direction comes last. "text/plain" comes
# back as the text "MemoryMimeType.TEXT", and `add` writes mime_type into the metadata of the caller.
# Who is bitten: embeddings whose length is not 1: wrong order, and score_threshold drops the best; code that looks at mime_type.
# Do: normalise the vectors, for which squared L2 gives the same order and the score is the cosine.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv 'autogen-ext[chromadb]==0.7.5' autogen-core==0.7.5 chromadb==1.5.9
venv/bin/python - > seen <<'PROGRAM'
import asyncio, tempfile
from importlib.metadata import version
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.memory.chromadb import ChromaDBVectorMemory, CustomEmbeddingFunctionConfig, PersistentChromaDBVectorMemoryConfig
from chromadb import EmbeddingFunction
vectors = {'the same, longer': [9, 0], 'near': [0.6, 0.8], 'right angle': [0, 1], 'query': [1, 0]}
class Known(EmbeddingFunction):
    def __init__(self): pass
    def __call__(self, input): return [vectors[text] for text in input]
async def main():
    print('autogen-ext', version('autogen-ext'))
    for more in ({}, {'distance_metric': 'cosine', 'score_threshold': 0.1}):
        memory = ChromaDBVectorMemory(PersistentChromaDBVectorMemoryConfig(collection_name='notes', persistence_path=tempfile.mkdtemp(dir='.'), k=9, embedding_function_config=CustomEmbeddingFunctionConfig(function=Known, params={}), **more))
        mine = {'topic': 'a'}
        for text in list(vectors)[:3]: await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=mine))
        found = (await memory.query('query')).results
        print(more, '|', ', '.join(f'{entry.content} {entry.metadata["score"]:.1f}' for entry in found), '|', found[0].mime_type, '| mine:', mine)
        await memory.close()
asyncio.run(main())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
autogen-ext 0.7.5
{} | near 0.6, right angle 0.0, the same, longer -31.0 | MemoryMimeType.TEXT | mine: {'topic': 'a'}
{'distance_metric': 'cosine', 'score_threshold': 0.1} | near 0.6 | MemoryMimeType.TEXT | mine: {'topic': 'a'}
EXPECTED
