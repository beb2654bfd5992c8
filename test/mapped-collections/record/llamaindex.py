import json, os

from commands import answer, attempt
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters
from llama_index.embeddings.openai import OpenAIEmbedding

database, url = os.environ['DATABASE'], os.environ['DATABASE_URL']
options = json.loads(os.environ['OPTIONS'])


def qdrant():
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    return QdrantVectorStore(collection_name='notes', client=QdrantClient(url=url), **options)


def chroma():
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore

    host, port = url.removeprefix('http://').split(':')
    collection = chromadb.HttpClient(host=host, port=int(port)).create_collection('notes')
    return ChromaVectorStore(chroma_collection=collection)


def milvus():
    from llama_index.vector_stores.milvus import MilvusVectorStore

    return MilvusVectorStore(uri=url, collection_name='notes', dim=8, overwrite=True, **options)


def lancedb():
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    return LanceDBVectorStore(uri=url, table_name='notes')


store = {'qdrant': qdrant, 'chroma': chroma, 'milvus': milvus, 'lancedb': lancedb}[database]()
Settings.llm = MockLLM()
Settings.embed_model = OpenAIEmbedding(model_name='eight')
index = VectorStoreIndex(nodes=[], storage_context=StorageContext.from_defaults(vector_store=store))


def add(text, metadata, id=None):
    # Without what surrounds the text, so that its vector is that of the text alone.
    node = TextNode(text=text, metadata=metadata, excluded_embed_metadata_keys=list(metadata), **({'id_': id} if id else {}))
    index.insert_nodes([node])
    return node.node_id


def change(id, text, metadata):
    remove(id)
    add(text, metadata, id)


def remove(id):
    store.delete_nodes(node_ids=[id])


def search(text, user):
    filters = MetadataFilters(filters=[ExactMatchFilter(key='user_id', value=user)])
    hits = index.as_retriever(similarity_top_k=9, filters=filters).retrieve(text)
    return [(hit.node.get_content(), hit.score, hit.node.metadata) for hit in hits]


recorded = attempt(add)
answer(recorded, add=add, change=change, remove=remove, search=search)
