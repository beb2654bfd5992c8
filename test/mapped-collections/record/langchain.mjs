import { randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { Document } from '@langchain/core/documents';
import { OpenAIEmbeddings } from '@langchain/openai';

const { memories, searches, reread } = await json(process.stdin);
const { DATABASE: database, DATABASE_URL: url, OPTIONS, OPENAI_BASE_URL: baseURL } = process.env;
// n8n: documents come from its loader, with what it adds, and get no ids.
const { n8n = false, owner = 'user_id', index } = JSON.parse(OPTIONS);
const embeddings = new OpenAIEmbeddings({ model: 'eight', configuration: { baseURL } });

const loaded = { source: 'blob', blobType: 'application/json', loc: { lines: { from: 1, to: 1 } } };
const stores = {
  async qdrant() {
    const { QdrantVectorStore } = await import('@langchain/qdrant');
    const store = await QdrantVectorStore.fromExistingCollection(embeddings, { url, collectionName: 'notes' });
    if (index) await store.client.createPayloadIndex('notes', { field_name: index, field_schema: 'keyword' });
    return { store, of: (value) => ({ must: [{ key: `metadata.${owner}`, match: { value } }] }) };
  },
  async chroma() {
    const { Chroma } = await import('@langchain/community/vectorstores/chroma');
    return { store: new Chroma(embeddings, { url, collectionName: 'notes' }), of: (user_id) => ({ user_id }) };
  },
  async milvus() {
    const { Milvus } = await import('@langchain/community/vectorstores/milvus');
    return { store: new Milvus(embeddings, { url, collectionName: 'notes' }), of: (value) => `user_id == "${value}"` };
  },
  async lancedb() {
    const { LanceDB } = await import('@langchain/community/vectorstores/lancedb');
    return { store: new LanceDB(embeddings, { uri: url, tableName: 'notes' }), of: () => undefined };
  },
};
const { store, of } = await stores[database]();
if (reread) {
  const hits = await store.similaritySearch('', 20, of(reread.user_id));
  await store.delete({ ids: [reread.remove] });
  const metadata = { ...(n8n && loaded), ...memories[0].attempts.at(-1) };
  const added = new Document({ pageContent: reread.text, metadata });
  await store.addDocuments([added], n8n ? undefined : { ids: [randomUUID()] });
  console.log(JSON.stringify({ read: hits.map(({ pageContent }) => pageContent) }));
  process.exit();
}
const [ids, refused] = [{}, []];
for (const { key, text, user_id, attempts } of memories) {
  for (const metadata of attempts) {
    const all = { ...(n8n && loaded), ...metadata, ...(user_id && { [owner]: user_id }) };
    if (owner !== 'user_id') delete all.user_id;
    const id = randomUUID();
    try {
      await store.addDocuments([new Document({ pageContent: text, metadata: all })], n8n ? undefined : { ids: [id] });
      ids[key] = id;
      break;
    } catch (error) {
      refused.push(`${key}: ${error.message.slice(0, 200)}`);
    }
  }
}
const keyOf = (document) => memories.find(({ text }) => text === document.pageContent).key;
for (const search of searches) {
  const hits = (await store.similaritySearchWithScore(search.text, 9, of(search.user_id)))
    // A store that ignores filters.
    .filter(([{ metadata }]) => metadata[owner] === search.user_id);
  search.found = hits.map(([document]) => keyOf(document));
  search.scores = hits.map(([, score]) => score);
}
// Those that the store made itself. In LanceDB there are none.
for (const document of database === 'lancedb' ? [] : await store.similaritySearch('', 9)) {
  ids[keyOf(document)] = document.id ?? document.metadata.langchain_primaryid;
}
console.log(JSON.stringify({ ids, searches, refused }));
process.exit();
