import os

from commands import answer, attempt
from mem0 import Memory

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


def add(text, metadata):
    # A memory of mem0 has a user, an agent or a run.
    owner = {'user_id': metadata.pop('user_id')} if 'user_id' in metadata else {'agent_id': 'agent'}
    return memory.add(text, metadata=metadata, infer=False, **owner)['results'][0]['id']


def search(text, user):
    hits = memory.search(text, filters={'user_id': user}, top_k=9, threshold=0)['results']
    return [(hit['memory'], hit['score'], hit['metadata']) for hit in hits]


recorded = attempt(add)
change = lambda id, text, metadata: memory.update(id, text)
answer({'collection': 'mem0', **recorded}, add=add, change=change, remove=memory.delete, search=search)
