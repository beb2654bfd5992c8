import { randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';

const { memories, searches, reread } = await json(process.stdin);
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
if (reread) {
  const { user_id, text, remove } = reread;
  const [queryVector] = await embed(['']);
  const hits = await store.query({ indexName, queryVector, topK: 20, filter: { user_id } });
  await store.deleteVector({ indexName, id: remove });
  const added = { vectors: await embed([text]), metadata: [{ text, ...memories[0].attempts.at(-1) }] };
  await store.upsert({ indexName, ...added, ids: [randomUUID()] });
  console.log(JSON.stringify({ read: hits.map(({ metadata }) => metadata.text) }));
  process.exit();
}
await store.createIndex({ indexName, dimension: 8 });
const [ids, refused] = [{}, []];
for (const { key, text, attempts } of memories) {
  for (const metadata of attempts) {
    const id = randomUUID();
    try {
      // As its documentation does: the text is a key of the metadata.
      const added = { vectors: await embed([text]), metadata: [{ text, ...metadata }], ids: [id] };
      await store.upsert({ indexName, ...added });
      ids[key] = id;
      break;
    } catch (error) {
      refused.push(`${key}: ${error.message.slice(0, 200)}`);
    }
  }
}
const keyOf = (id) => Object.keys(ids).find((key) => ids[key] === id);
for (const search of searches) {
  const [queryVector] = await embed([search.text]);
  const hits = await store.query({ indexName, queryVector, topK: 9, filter: { user_id: search.user_id } });
  search.found = hits.map(({ id }) => keyOf(id));
  search.scores = hits.map(({ score }) => score);
}
console.log(JSON.stringify({ ids, searches, refused }));
process.exit();
