import json, os, sys
from uuid import uuid4

from langchain_core.documents import Document
from langchain_openai import OpenAIEmbeddings

given = json.load(sys.stdin)
url = os.environ['DATABASE_URL']
embeddings = OpenAIEmbeddings(model='eight', check_embedding_ctx_length=False)


def qdrant():
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(url=url)
    if not given.get('reread'):
        client.create_collection('notes', vectors_config=models.VectorParams(size=8, distance=models.Distance.COSINE))
    store = QdrantVectorStore(client=client, collection_name='notes', embedding=embeddings)
    of = lambda user: models.Filter(must=[models.FieldCondition(key='metadata.user_id', match=models.MatchValue(value=user))])
    return store, lambda user: {'filter': of(user)}


def chroma():
    import chromadb
    from langchain_chroma import Chroma

    host, port = url.removeprefix('http://').split(':')
    client = chromadb.HttpClient(host=host, port=int(port))
    store = Chroma(client=client, collection_name='notes', embedding_function=embeddings)
    return store, lambda user: {'filter': {'user_id': user}}


def milvus():
    from langchain_milvus import Milvus

    store = Milvus(embeddings, collection_name='notes', connection_args={'uri': url}, **json.loads(os.environ.get('OPTIONS', '{}')))
    return store, lambda user: {'expr': f'user_id == "{user}"'}


def lancedb():
    import lancedb
    from langchain_community.vectorstores import LanceDB

    store = LanceDB(connection=lancedb.connect(url), embedding=embeddings, table_name='notes', mode='append')
    return store, lambda user: {'filter': f"metadata.user_id = '{user}'"}


store, of_user = {'qdrant': qdrant, 'chroma': chroma, 'milvus': milvus, 'lancedb': lancedb}[os.environ['DATABASE']]()
again = given.get('reread')
if again:
    hits = store.similarity_search('', k=20, **of_user(again['user_id']))
    store.delete(ids=[again['remove']])
    metadata = given['memories'][0]['attempts'][-1]
    store.add_documents([Document(page_content=again['text'], metadata=metadata)], ids=[str(uuid4())])
    print(json.dumps({'read': [document.page_content for document in hits]}))
    sys.exit()
ids, refused = {}, []
for each in given['memories']:
    for metadata in each['attempts']:
        id = str(uuid4())
        try:
            store.add_documents([Document(page_content=each['text'], metadata=metadata)], ids=[id])
            ids[each['key']] = id
            break
        except Exception as error:
            refused.append(f'{each["key"]}: {str(error)[:200]}')
keys = {each['text']: each['key'] for each in given['memories']}
for search in given['searches']:
    hits = store.similarity_search_with_score(search['text'], k=9, **of_user(search['user_id']))
    search['found'] = [keys[document.page_content] for document, _ in hits]
    search['scores'] = [float(score) for _, score in hits]
print(json.dumps({'ids': ids, 'searches': given['searches'], 'refused': refused}))
