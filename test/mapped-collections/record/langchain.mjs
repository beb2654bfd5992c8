import { randomUUID } from 'node:crypto';
import { Document } from '@langchain/core/documents';
import { OpenAIEmbeddings } from '@langchain/openai';
import { answer, attempt, keyOf } from './commands.mjs';

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
const stored = async (text, metadata, id) => {
  const all = { ...(n8n && loaded), ...metadata, ...(metadata.user_id && { [owner]: metadata.user_id }) };
  if (owner !== 'user_id') delete all.user_id;
  await store.addDocuments(
    [new Document({ pageContent: text, metadata: all })],
    id === undefined ? undefined : { ids: [id] },
  );
};
const output_fields = ['langchain_text', 'langchain_primaryid'];
/** Texts near to one with the ids that the store made itself. Those of Milvus it does not show. */
const made = async (text, filter) =>
  database === 'milvus'
    ? (await store.client.query({ collection_name: 'notes', filter: filter ?? '', limit: 9, output_fields })).data.map(
        (row) => output_fields.map((field) => row[field]),
      )
    : (await store.similaritySearch(text, 9, filter)).map(({ pageContent, id }) => [pageContent, id]);
const nearest = async (text, user_id) =>
  (await store.similaritySearchWithScore(text, 9, of(user_id)))
    // A store that ignores filters.
    .filter(([{ metadata }]) => metadata[owner] === user_id);
const commands = {
  async add(text, metadata) {
    await stored(text, metadata, n8n ? undefined : randomUUID());
    return Object.fromEntries(await made(text, of(metadata.user_id)))[text];
  },
  async change(id, text, metadata) {
    // It ignores ids there.
    if (database === 'milvus') await store.delete({ ids: [id] });
    await stored(text, metadata, id);
  },
  remove: (id) => store.delete({ ids: [id] }),
  search: async (text, user_id) =>
    (await nearest(text, user_id)).map(([{ pageContent, metadata }, score]) => [pageContent, score, metadata]),
};
const { ids, refused } = await attempt(async (text, metadata) => {
  const id = randomUUID();
  await stored(text, metadata, n8n ? undefined : id);
  return id;
});
// In LanceDB there are none.
for (const [text, id] of database === 'lancedb' ? [] : await made('')) ids[keyOf(text)] = id;
await answer({ ids, refused }, commands);
