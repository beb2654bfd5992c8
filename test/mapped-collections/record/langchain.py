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
    client.create_collection('notes', vectors_config=models.VectorParams(size=8, distance=models.Distance.COSINE))
    store = QdrantVectorStore(client=client, collection_name='notes', embedding=embeddings)
    of = lambda user: models.Filter(must=[models.FieldCondition(key='metadata.user_id', match=models.MatchValue(value=user))])
    return store, lambda user: {'filter': of(user)}, lambda documents: documents


def chroma():
    import chromadb
    from langchain_chroma import Chroma
    from langchain_community.vectorstores.utils import filter_complex_metadata

    host, port = url.removeprefix('http://').split(':')
    client = chromadb.HttpClient(host=host, port=int(port))
    store = Chroma(client=client, collection_name='notes', embedding_function=embeddings)
    return store, lambda user: {'filter': {'user_id': user}}, filter_complex_metadata


def milvus():
    from langchain_milvus import Milvus

    store = Milvus(embeddings, collection_name='notes', connection_args={'uri': url}, **json.loads(os.environ.get('OPTIONS', '{}')))
    return store, lambda user: {'expr': f'user_id == "{user}"'}, lambda documents: documents


def lancedb():
    import lancedb
    from langchain_community.vectorstores import LanceDB

    store = LanceDB(connection=lancedb.connect(url), embedding=embeddings, table_name='notes')
    return store, lambda user: {'filter': f"metadata.user_id = '{user}'"}, lambda documents: documents


store, of_user, plain = {'qdrant': qdrant, 'chroma': chroma, 'milvus': milvus, 'lancedb': lancedb}[os.environ['DATABASE']]()
ids = {each['key']: str(uuid4()) for each in given['memories']}
keys = {each['text']: each['key'] for each in given['memories']}
documents = [
    Document(page_content=each['text'], metadata={**({'user_id': each['user_id']} if 'user_id' in each else {}), **each['metadata']})
    for each in given['memories']
]
store.add_documents(plain(documents), ids=list(ids.values()))
for search in given['searches']:
    hits = store.similarity_search_with_score(search['text'], k=9, **of_user(search['user_id']))
    search['found'] = [keys[document.page_content] for document, _ in hits]
    search['scores'] = [float(score) for _, score in hits]
print(json.dumps({'ids': ids, 'searches': given['searches']}))
