#!/usr/bin/env bash
# llama-index-vector-stores-lancedb 0.6.0 with lancedb 0.40.0 (PyPI), seen 2026-11-28.
# Expect: `delete_nodes(node_ids=[…])` deletes nodes and `delete(ref_doc_id)` those of a document, as in the stores for Qdrant and
# Milvus. (guess: yes, 90 %)
# Happens: both raise for every id. The filter has ids between backticks in one and double quotes in the other, and LanceDB takes
# either for the name of a column, which is not there. Nothing is deleted.
# Who is bitten: who updates or deletes documents through the interface that all vector stores of LlamaIndex share.
# Do: ask the table: `store.table.delete("id in ('…')")`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check llama-index-vector-stores-lancedb==0.6.0 llama-index-core==0.14.25 lancedb==0.40.0 pandas==3.1.1
venv/bin/pip list --disable-pip-version-check 2> /dev/null | grep -E '^(lancedb|llama-index-vector-stores-lancedb) '
venv/bin/python - > seen 2> warnings <<'PROGRAM'
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.vector_stores.lancedb import LanceDBVectorStore

store = LanceDBVectorStore(uri='data', table_name='notes')
for name in ('tea', 'coffee'):
    of = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f'document-{name}')}
    store.add([TextNode(id_=f'node-{name}', text=name, embedding=[1.0, 0.0], relationships=of)])
left = lambda: sorted(store.table.to_pandas()['id'])
for name, delete in {
    'delete_nodes': lambda: store.delete_nodes(node_ids=['node-tea']),
    'delete': lambda: store.delete('document-tea'),
    'table.delete': lambda: store.table.delete("id in ('node-tea')"),
}.items():
    try:
        delete()
        said = 'no error'
    except Exception as error:
        said = f'{type(error).__name__}, for a column: {"No field named" in str(error)}'
    print(f'{name}: {said}; left:', *left())
PROGRAM
cat seen
diff seen - <<'EXPECTED'
delete_nodes: ValueError, for a column: True; left: node-coffee node-tea
delete: ValueError, for a column: True; left: node-coffee node-tea
table.delete: no error; left: node-coffee
EXPECTED
