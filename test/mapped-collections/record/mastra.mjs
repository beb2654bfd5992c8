import { randomUUID } from 'node:crypto';
import { answer, attempt } from './commands.mjs';

const { DATABASE: database, DATABASE_URL: url, OPENAI_BASE_URL } = process.env;
const embed = async (input) => {
  const body = JSON.stringify({ model: 'eight', input });
  const response = await fetch(`${OPENAI_BASE_URL}/embeddings`, { method: 'POST', body });
  return (await response.json()).data.map(({ embedding }) => embedding);
};
const stores = {
  async qdrant() {
    const { QdrantVector } = await import('@mastra/qdrant');
    return new QdrantVector({ id: 'vectors', url });
  },
  async chroma() {
    const { ChromaVector } = await import('@mastra/chroma');
    const { hostname: host, port } = new URL(url);
    return new ChromaVector({ id: 'vectors', host, port: Number(port) });
  },
};
const store = await stores[database]();
const indexName = 'notes';
await store.createIndex({ indexName, dimension: 8 });
const commands = {
  async add(text, metadata) {
    const id = randomUUID();
    // As its documentation does: the text is a key of the metadata.
    const added = { vectors: await embed([text]), metadata: [{ text, ...metadata }], ids: [id] };
    await store.upsert({ indexName, ...added });
    return id;
  },
  async change(id, text, metadata) {
    const [vector] = await embed([text]);
    await store.updateVector({ indexName, id, update: { vector, metadata: { text, ...metadata } } });
  },
  remove: (id) => store.deleteVector({ indexName, id }),
  async search(text, user_id) {
    const [queryVector] = await embed([text]);
    const hits = await store.query({ indexName, queryVector, topK: 9, filter: { user_id } });
    return hits.map(({ metadata, score }) => [metadata.text, score, metadata]);
  },
};
const recorded = await attempt(commands.add);
await answer(recorded, commands);
