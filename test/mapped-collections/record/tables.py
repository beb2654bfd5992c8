import json, os
from uuid import uuid4

from commands import answer, attempt, searched

# Tables of Postgres.

url, library, options = os.environ['DATABASE_URL'], os.environ['LIBRARY'], json.loads(os.environ['OPTIONS'])
psycopg = url.replace('postgres://', 'postgresql+psycopg://')
METRICS = ('cosine', 'l2', 'inner product')


def embed(text):
    import httpx

    answer = httpx.post(os.environ['OPENAI_BASE_URL'] + '/embeddings', json={'model': 'eight', 'input': [text]})
    return [float(value) for value in answer.json()['data'][0]['embedding']]


def langchain_embeddings():
    from langchain_openai import OpenAIEmbeddings

    return OpenAIEmbeddings(model='eight', check_embedding_ctx_length=False)


class Langchain:
    """PGVector of langchain-postgres, and of langchain-community before."""

    collection = 'public.langchain_pg_embedding'

    def __init__(self, metric):
        strategy = {'cosine': 'cosine', 'l2': 'l2' if not options.get('community') else 'euclidean', 'inner product': 'inner'}[metric]
        if options.get('community'):
            from langchain_community.vectorstores.pgvector import DistanceStrategy, PGVector

            more = {'connection_string': url.replace('postgres://', 'postgresql+psycopg2://'), 'use_jsonb': options.get('use_jsonb', False)}
            strategy = {'cosine': DistanceStrategy.COSINE, 'euclidean': DistanceStrategy.EUCLIDEAN, 'inner': DistanceStrategy.MAX_INNER_PRODUCT}[strategy]
            self.store = PGVector(embedding_function=langchain_embeddings(), collection_name='notes', distance_strategy=strategy, **more)
        else:
            from langchain_postgres import PGVector
            from langchain_postgres.vectorstores import DistanceStrategy

            strategy = {'cosine': DistanceStrategy.COSINE, 'l2': DistanceStrategy.EUCLIDEAN, 'inner': DistanceStrategy.MAX_INNER_PRODUCT}[strategy]
            self.store = PGVector(langchain_embeddings(), collection_name='notes', connection=psycopg, distance_strategy=strategy)

    def add(self, text, metadata, id=None):
        id = id or str(uuid4())
        self.store.add_texts([text], metadatas=[metadata], ids=[id])
        if not options.get('community'):
            return id
        # What it calls an id is custom_id, and its key another one.
        import psycopg2

        with psycopg2.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute('select uuid::text from langchain_pg_embedding where custom_id = %s', [id])
            return cursor.fetchone()[0]

    def search(self, text, user):
        hits = self.store.similarity_search_with_score(text, k=10, filter={'user_id': user})
        return [(document.page_content, score) for document, score in hits]

    def change(self, id, text, metadata):
        self.add(text, metadata, id)

    def remove(self, id):
        self.store.delete([id])


class LangchainTables(Langchain):
    """PGVectorStore of langchain-postgres."""

    collection = 'public.notes'

    def __init__(self, metric):
        from langchain_postgres import Column, PGEngine, PGVectorStore
        from langchain_postgres.v2.indexes import DistanceStrategy

        engine = PGEngine.from_connection_string(psycopg)
        # Without a column for it, the user is in langchain_metadata.
        columns = [Column('user_id', 'TEXT')] if options.get('column') else []
        if metric == 'cosine':
            engine.init_vectorstore_table(table_name='notes', vector_size=8, metadata_columns=columns)
        strategy = {'cosine': 'COSINE_DISTANCE', 'l2': 'EUCLIDEAN', 'inner product': 'INNER_PRODUCT'}[metric]
        more = {'metadata_columns': [name for name in ('user_id',) if columns], 'distance_strategy': DistanceStrategy[strategy]}
        self.store = PGVectorStore.create_sync(engine, langchain_embeddings(), table_name='notes', **more)


class Llamaindex:
    collection = 'public.data_notes'

    def __init__(self, metric):
        from llama_index.core import Settings, StorageContext, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llama_index.embeddings.openai import OpenAIEmbedding
        from llama_index.vector_stores.postgres import PGVectorStore
        from sqlalchemy import make_url

        at = make_url(url)
        more = {'hnsw_kwargs': {'hnsw_m': 16, 'hnsw_ef_construction': 64, 'hnsw_ef_search': 40, 'hnsw_dist_method': f'vector_{METHODS[metric]}_ops'}} if options.get('hnsw') else {}
        self.store = PGVectorStore.from_params(database=at.database, host=at.host, port=str(at.port), user=at.username, password=at.password or 'none', table_name='notes', embed_dim=8, **more, **options.get('store', {}))
        Settings.llm = MockLLM()
        Settings.embed_model = OpenAIEmbedding(model_name='eight')
        self.index = VectorStoreIndex(nodes=[], storage_context=StorageContext.from_defaults(vector_store=self.store))

    def add(self, text, metadata, id=None):
        from llama_index.core.schema import TextNode

        # Without what surrounds the text, so that its vector is that of the text alone.
        node = TextNode(text=text, metadata=metadata, excluded_embed_metadata_keys=list(metadata), **({'id_': id} if id else {}))
        self.index.insert_nodes([node])
        return node.node_id

    def search(self, text, user):
        from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

        filters = MetadataFilters(filters=[ExactMatchFilter(key='user_id', value=user)])
        hits = self.index.as_retriever(similarity_top_k=10, filters=filters).retrieve(text)
        return [(hit.node.get_content(), hit.score) for hit in hits]

    def change(self, id, text, metadata):
        self.remove(id)
        self.add(text, metadata, id)

    def remove(self, id):
        self.store.delete_nodes(node_ids=[id])


METHODS = {'cosine': 'cosine', 'l2': 'l2', 'inner product': 'ip'}


class Mem0:
    collection = 'public.mem0'
    metrics = ('cosine',)

    def __init__(self, metric):
        from mem0 import Memory

        store = {'connection_string': url, 'embedding_model_dims': 8}
        self.memory = Memory.from_config({
            'vector_store': {'provider': 'pgvector', 'config': store},
            'embedder': {'provider': 'openai', 'config': {'model': 'eight'}},
            'history_db_path': 'history.db',
        })

    def add(self, text, metadata):
        # A memory of mem0 has a user, an agent or a run.
        owner = {'user_id': metadata.pop('user_id')} if 'user_id' in metadata else {'agent_id': 'agent'}
        return self.memory.add(text, metadata=metadata, infer=False, **owner)['results'][0]['id']

    def search(self, text, user):
        if options.get('old'):
            hits = self.memory.search(text, user_id=user, limit=10)['results']
        else:
            hits = self.memory.search(text, filters={'user_id': user}, top_k=10, threshold=0)['results']
        return [(hit['memory'], hit['score']) for hit in hits]

    def change(self, id, text, metadata):
        self.memory.update(id, text)

    def remove(self, id):
        self.memory.delete(id)


class Haystack:
    collection = 'public.haystack_documents'

    def __init__(self, metric):
        from haystack.utils import Secret
        from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

        function = {'cosine': 'cosine_similarity', 'l2': 'l2_distance', 'inner product': 'inner_product'}[metric]
        more = {'search_strategy': 'hnsw'} if options.get('hnsw') == metric else {}
        self.store = PgvectorDocumentStore(connection_string=Secret.from_token(url), embedding_dimension=8, vector_function=function, **more)

    def add(self, text, metadata, id=None):
        from haystack import Document
        from haystack.document_stores.types import DuplicatePolicy

        document = Document(content=text, meta=metadata, embedding=embed(text), **({'id': id} if id else {}))
        self.store.write_documents([document], policy=DuplicatePolicy.OVERWRITE if id else DuplicatePolicy.FAIL)
        return document.id

    def search(self, text, user):
        filters = {'field': 'meta.user_id', 'operator': '==', 'value': user}
        hits = self.store._embedding_retrieval(embed(text), filters=filters, top_k=10)
        return [(hit.content, hit.score) for hit in hits]

    def change(self, id, text, metadata):
        self.add(text, metadata, id)

    def remove(self, id):
        self.store.delete_documents([id])


class Agno:
    collection = 'ai.notes'

    def __init__(self, metric):
        from agno.knowledge.embedder.openai import OpenAIEmbedder
        from agno.vectordb.distance import Distance
        from agno.vectordb.pgvector import PgVector

        distance = {'cosine': Distance.cosine, 'l2': Distance.l2, 'inner product': Distance.max_inner_product}[metric]
        embedder = OpenAIEmbedder(id='eight', dimensions=8, api_key='none', base_url=os.environ['OPENAI_BASE_URL'])
        self.store = PgVector(table_name='notes', db_url=psycopg, embedder=embedder, distance=distance)
        self.store.create()

    def add(self, text, metadata):
        from hashlib import md5

        from agno.knowledge.document import Document
        from sqlalchemy import text as sql

        def known():
            with self.store.Session() as session:
                return {row[0] for row in session.execute(sql('select id from ai.notes'))}

        before = known()
        # Version 3 has a column for the user; before, the metadata hold one.
        owner = {'user_id': metadata.pop('user_id', None)} if options.get('column') else {}
        self.store.insert(md5(text.encode()).hexdigest(), [Document(content=text, name='note', meta_data=metadata)], **owner)
        return (known() - before).pop()

    def search(self, text, user):
        of_user = {'user_id': user} if options.get('column') else {'filters': {'user_id': user}}
        hits = self.store.search(text, limit=30, **of_user)
        # It finds the rows of nobody as well.
        return [(hit.content, (hit.meta_data or {}).get('similarity_score', 0)) for hit in hits][:10]

    def change(self, id, text, metadata):
        raise NotImplementedError('a content is replaced as a whole')

    def remove(self, id):
        self.store.delete_by_id(id)


class Langgraph:
    collection = 'public.store'

    def __init__(self, metric):
        from langgraph.store.postgres import PostgresStore

        index = {'dims': 8, 'embed': langchain_embeddings(), 'fields': ['text'], 'distance_type': {'inner product': 'inner_product'}.get(metric, metric), 'ann_index_config': {'kind': 'hnsw'}}
        self.context = PostgresStore.from_conn_string(url, index=index)
        self.store = self.context.__enter__()
        if metric == 'cosine':
            self.store.setup()

    def add(self, text, metadata):
        user = metadata.pop('user_id', None)
        namespace, key = ('memories', user) if user else ('memories',), str(uuid4())
        self.store.put(namespace, key, {'text': text, **metadata})
        return f'{".".join(namespace)}/{key}'

    def search(self, text, user):
        return [(hit.value['text'], hit.score) for hit in self.store.search(('memories', user), query=text, limit=10)]

    def change(self, id, text, metadata):
        namespace, key = id.split('/')
        metadata.pop('user_id', None)
        self.store.put(tuple(namespace.split('.')), key, {'text': text, **metadata})

    def remove(self, id):
        namespace, key = id.split('/')
        self.store.delete(tuple(namespace.split('.')), key)


class Vecs:
    collection = 'vecs.notes'

    def __init__(self, metric):
        import vecs

        self.measure = {'cosine': 'cosine_distance', 'l2': 'l2_distance', 'inner product': 'max_inner_product'}[metric]
        self.docs = vecs.create_client(url.replace('postgres://', 'postgresql://')).get_or_create_collection(name='notes', dimension=8)

    def add(self, text, metadata, id=None):
        id = id or str(uuid4())
        self.docs.upsert(records=[(id, embed(text), {'text': text, **metadata})])
        return id

    def search(self, text, user):
        hits = self.docs.query(data=embed(text), limit=10, filters={'user_id': {'$eq': user}}, measure=self.measure, include_value=True, include_metadata=True)
        return [(metadata['text'], value) for _, value, metadata in hits]

    def change(self, id, text, metadata):
        self.add(text, metadata, id)

    def remove(self, id):
        self.docs.delete(ids=[id])


class Sqlalchemy:
    """The models that pgvector's own page shows, with a user and a time."""

    collection = 'public.notes'

    def __init__(self, metric):
        from datetime import datetime
        from pgvector.sqlalchemy import Vector
        from sqlalchemy import Column, DateTime, Index, String, Text, create_engine, func
        from sqlalchemy.dialects.postgresql import JSONB
        from sqlalchemy.orm import Session, declarative_base

        Base = declarative_base()

        class Note(Base):
            __tablename__ = 'notes'
            id = Column(String, primary_key=True, default=lambda: str(uuid4()))
            user_id = Column(String, nullable=True, index=True)
            content = Column(Text, nullable=False)
            extra = Column(JSONB, nullable=False, default=dict)
            embedding = Column(Vector(8))
            created_at = Column(DateTime(timezone=True), server_default=func.now(), nullable=False)

        Index('notes_embedding', Note.embedding, postgresql_using='hnsw', postgresql_ops={'embedding': 'vector_cosine_ops'})
        driver = url.replace('postgres://', f'postgresql+{options.get("driver", "psycopg")}://')
        engine = create_engine(driver)
        Base.metadata.create_all(engine)
        self.Note, self.session = Note, Session(engine)
        self.metric = {'cosine': 'cosine_distance', 'l2': 'l2_distance', 'inner product': 'max_inner_product'}[metric]

    def add(self, text, metadata):
        note = self.Note(user_id=metadata.pop('user_id', None), content=text, extra=metadata, embedding=embed(text))
        self.session.add(note)
        self.session.commit()
        return note.id

    def search(self, text, user):
        distance = getattr(self.Note.embedding, self.metric)(embed(text))
        rows = self.session.query(self.Note.content, distance).filter(self.Note.user_id == user).order_by(distance).limit(10).all()
        self.session.commit()
        return [tuple(row) for row in rows]

    def change(self, id, text, metadata):
        note = self.session.get(self.Note, id)
        note.content, note.embedding = text, embed(text)
        self.session.commit()

    def remove(self, id):
        self.session.delete(self.session.get(self.Note, id))
        self.session.commit()


class Django:
    collection = 'public.notes_note'

    def __init__(self, metric):
        import django
        from django.conf import settings
        from sqlalchemy import make_url

        if metric == 'cosine':
            at = make_url(url)
            database = {'ENGINE': 'django.db.backends.postgresql', 'NAME': at.database, 'HOST': at.host, 'PORT': at.port, 'USER': at.username}
            settings.configure(DATABASES={'default': database}, USE_TZ=True, DEFAULT_AUTO_FIELD='django.db.models.BigAutoField')
            django.setup()
            Django.Note = django_model()
        import pgvector.django

        name = {'cosine': 'CosineDistance', 'l2': 'L2Distance', 'inner product': 'MaxInnerProduct'}[metric]
        self.distance = getattr(pgvector.django, name)

    def add(self, text, metadata):
        return str(Django.Note.objects.create(user_id=metadata.pop('user_id', None), content=text, extra=metadata, embedding=embed(text)).pk)

    def search(self, text, user):
        distance = self.distance('embedding', embed(text))
        rows = Django.Note.objects.filter(user_id=user).annotate(distance=distance).order_by('distance')[:10]
        return [(row.content, row.distance) for row in rows]

    def change(self, id, text, metadata):
        note = Django.Note.objects.get(pk=id)
        note.content, note.embedding = text, embed(text)
        note.save()

    def remove(self, id):
        Django.Note.objects.get(pk=id).delete()


def django_model():
    from django.db import connection, models
    from pgvector.django import HnswIndex, VectorField

    class Note(models.Model):
        user_id = models.CharField(max_length=64, null=True, db_index=True)
        content = models.TextField()
        extra = models.JSONField(default=dict)
        embedding = VectorField(dimensions=8, null=True)
        created_at = models.DateTimeField(auto_now_add=True)
        updated_at = models.DateTimeField(auto_now=True)

        class Meta:
            app_label = 'notes'
            indexes = [HnswIndex(name='notes_embedding', fields=['embedding'], m=16, ef_construction=64, opclasses=['vector_cosine_ops'])]

    # What its migration runs.
    with connection.schema_editor() as editor:
        editor.create_model(Note)
    return Note


STORES = {each.__name__.lower(): each for each in (Langchain, LangchainTables, Llamaindex, Mem0, Haystack, Agno, Langgraph, Vecs, Sqlalchemy, Django)}
Store = STORES[library]
stores = {metric: Store(metric) for metric in getattr(Store, 'metrics', METRICS)}
first = stores['cosine']
recorded = attempt(first.add)
by_metric = [searched(store.search, metric=metric) for metric, store in stores.items()]
searches = [each for one in zip(*by_metric) for each in one]
commands = {name: getattr(first, name) for name in ('add', 'search', 'change', 'remove')}
answer({'collection': Store.collection, **recorded, 'searches': searches}, **commands)
