import { json } from 'node:stream/consumers';
import { OpenAIEmbedding } from '@llamaindex/openai';
import { Settings, storageContextFromDefaults, TextNode, VectorStoreIndex } from 'llamaindex';

const { memories, searches } = await json(process.stdin);
const { DATABASE: database, DATABASE_URL: url, OPENAI_BASE_URL: baseURL } = process.env;
Settings.embedModel = new OpenAIEmbedding({ model: 'eight', baseURL });
const stores = {
  async qdrant() {
    const { QdrantVectorStore } = await import('@llamaindex/qdrant');
    return new QdrantVectorStore({ url, collectionName: 'notes' });
  },
  async chroma() {
    const { ChromaVectorStore } = await import('@llamaindex/chroma');
    return new ChromaVectorStore({ collectionName: 'notes', chromaClientParams: { path: url } });
  },
  async milvus() {
    const { MilvusVectorStore } = await import('@llamaindex/milvus');
    return new MilvusVectorStore({ collection: 'notes', params: { configOrAddress: url } });
  },
};
const vectorStore = await stores[database]();
const storageContext = await storageContextFromDefaults({ vectorStore });
const index = await VectorStoreIndex.init({ nodes: [], storageContext });
const [ids, refused] = [{}, []];
for (const { key, text, attempts } of memories) {
  for (const metadata of attempts) {
    // Without what surrounds the text, so that its vector is that of the text alone.
    const node = new TextNode({ text, metadata, excludedEmbedMetadataKeys: Object.keys(metadata) });
    try {
      await index.insertNodes([node]);
      ids[key] = node.id_;
      break;
    } catch (error) {
      refused.push(`${key}: ${error.message.slice(0, 200)}`);
    }
  }
}
const keyOf = (id) => Object.keys(ids).find((key) => ids[key] === id);
for (const search of searches) {
  const filters = { filters: [{ key: 'user_id', value: search.user_id, operator: '==' }] };
  const hits = await index.asRetriever({ similarityTopK: 9, filters }).retrieve(search.text);
  search.found = hits.map(({ node }) => keyOf(node.id_));
  search.scores = hits.map(({ score }) => score);
}
console.log(JSON.stringify({ ids, searches, refused }));
process.exit();
