import json, os, sys

from mem0 import Memory

given = json.load(sys.stdin)
database, url = os.environ['DATABASE'], os.environ['DATABASE_URL']
host, port = (url.removeprefix('http://').split(':') + [''])[:2]
stores = {
    'qdrant': {'url': url, 'embedding_model_dims': 8},
    'chroma': {'host': host, 'port': int(port or 0)},
}
memory = Memory.from_config(
    {
        'vector_store': {'provider': database, 'config': stores[database]},
        'embedder': {'provider': 'openai', 'config': {'model': 'eight'}},
        'history_db_path': 'history.db',
    }
)
ids, refused = {}, []
for each in given['memories']:
    # A memory of mem0 has a user, an agent or a run.
    owner = {'user_id': each['user_id']} if 'user_id' in each else {'agent_id': 'agent'}
    for metadata in each['attempts']:
        metadata.pop('user_id', None)
        try:
            added = memory.add(each['text'], metadata=metadata, infer=False, **owner)
            ids[each['key']] = added['results'][0]['id']
            break
        except Exception as error:
            refused.append(f'{each["key"]}: {str(error)[:200]}')
keys = {id: key for key, id in ids.items()}
for search in given['searches']:
    hits = memory.search(search['text'], filters={'user_id': search['user_id']}, top_k=9, threshold=0)['results']
    search['found'] = [keys[hit['id']] for hit in hits]
    search['scores'] = [hit['score'] for hit in hits]
print(json.dumps({'collection': 'mem0', 'ids': ids, 'searches': given['searches'], 'refused': refused}))
