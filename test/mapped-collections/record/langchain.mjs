import { randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { Document } from '@langchain/core/documents';
import { OpenAIEmbeddings } from '@langchain/openai';

const { memories, searches } = await json(process.stdin);
const { DATABASE: database, DATABASE_URL: url, OPTIONS, OPENAI_BASE_URL: baseURL } = process.env;
// n8n: documents come from its loader, with what it adds, and get no ids.
const { n8n = false, owner = 'user_id', index } = JSON.parse(OPTIONS);
const embeddings = new OpenAIEmbeddings({ model: 'eight', configuration: { baseURL } });

const loaded = { source: 'blob', blobType: 'application/json', loc: { lines: { from: 1, to: 1 } } };
const documents = memories.map(
  ({ text, user_id, metadata }) =>
    new Document({
      pageContent: text,
      metadata: { ...(n8n && loaded), ...(user_id && { [owner]: user_id }), ...metadata },
    }),
);
const ids = Object.fromEntries(memories.map(({ key }) => [key, randomUUID()]));

const stores = {
  async qdrant() {
    const { QdrantVectorStore } = await import('@langchain/qdrant');
    const config = { url, collectionName: 'notes' };
    const store = n8n
      ? await QdrantVectorStore.fromDocuments(documents, embeddings, config)
      : await QdrantVectorStore.fromExistingCollection(embeddings, config);
    if (!n8n) await store.addDocuments(documents, { ids: Object.values(ids) });
    if (index) await store.client.createPayloadIndex('notes', { field_name: index, field_schema: 'keyword' });
    return { store, of: (value) => ({ must: [{ key: `metadata.${owner}`, match: { value } }] }) };
  },
};
const { store, of } = await stores[database]();

const keyOf = (document) => memories.find(({ text }) => text === document.pageContent).key;
for (const search of searches) {
  const hits = await store.similaritySearchWithScore(search.text, 9, of(search.user_id));
  search.found = hits.map(([document]) => keyOf(document));
  search.scores = hits.map(([, score]) => score);
}
if (n8n) for (const document of await store.similaritySearch('', 9)) ids[keyOf(document)] = document.id;
console.log(JSON.stringify({ ids, searches }));
