import json, os
from uuid import uuid4

from commands import answer, attempt
from langchain_core.documents import Document
from langchain_openai import OpenAIEmbeddings

url = os.environ['DATABASE_URL']
embeddings = OpenAIEmbeddings(model='eight', check_embedding_ctx_length=False)


def qdrant():
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(url=url)
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


def add(text, metadata, id=None):
    id = id or str(uuid4())
    store.add_documents([Document(page_content=text, metadata=metadata)], ids=[id])
    return id


def change(id, text, metadata):
    if os.environ['DATABASE'] == 'milvus':
        return store.upsert(ids=[id], documents=[Document(page_content=text, metadata=metadata)])
    # In LanceDB two rows would have the id.
    if os.environ['DATABASE'] == 'lancedb':
        remove(id)
    add(text, metadata, id)


def remove(id):
    store.delete(ids=[id])


def search(text, user):
    hits = store.similarity_search_with_score(text, k=9, **of_user(user))
    return [(document.page_content, float(score), document.metadata) for document, score in hits]


recorded = attempt(add)
answer(recorded, add=add, change=change, remove=remove, search=search)
