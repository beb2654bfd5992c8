import { OpenAIEmbedding } from '@llamaindex/openai';
import { Settings, storageContextFromDefaults, TextNode, VectorStoreIndex } from 'llamaindex';
import { answer, attempt } from './commands.mjs';

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
const commands = {
  async add(text, metadata) {
    // Without what surrounds the text, so that its vector is that of the text alone.
    const node = new TextNode({ text, metadata, excludedEmbedMetadataKeys: Object.keys(metadata) });
    await index.insertNodes([node]);
    return node.id_;
  },
  async change() {
    throw new Error('a node is replaced with its document');
  },
  remove: (id) => vectorStore.delete(id),
  async search(text, value) {
    const filters = { filters: [{ key: 'user_id', value, operator: '==' }] };
    const hits = await index.asRetriever({ similarityTopK: 9, filters }).retrieve(text);
    return hits.map(({ node, score }) => [node.getContent(), score, node.metadata]);
  },
};
const recorded = await attempt(commands.add);
await answer(recorded, commands);
