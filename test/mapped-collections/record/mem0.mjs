import { register } from 'node:module';
import { json } from 'node:stream/consumers';

// It imports SQLite, which has to be compiled, for a history that is turned off here: an empty class.
const HOOK = `export const resolve = (specifier, context, next) => specifier === 'better-sqlite3'
  ? { url: 'data:text/javascript,export default class {}', shortCircuit: true } : next(specifier, context);`;
register(`data:text/javascript,${encodeURIComponent(HOOK)}`);
const { Memory } = await import('mem0ai/oss');

const { memories, searches } = await json(process.stdin);
const { DATABASE: provider, DATABASE_URL: url, OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
const memory = new Memory({
  vectorStore: { provider, config: { url, collectionName: 'memories', dimension: 8, embeddingModelDims: 8 } },
  embedder: { provider: 'openai', config: { apiKey, baseURL, model: 'eight', embeddingDims: 8 } },
  llm: { provider: 'openai', config: { apiKey, baseURL } },
  disableHistory: true,
});
const [ids, refused] = [{}, []];
for (const { key, text, user_id, metadata } of memories) {
  // A memory of mem0 has a user, an agent or a run.
  const owner = user_id ? { userId: user_id } : { agentId: 'agent' };
  try {
    const { results } = await memory.add(text, { ...owner, metadata, infer: false });
    ids[key] = results[0].id;
  } catch (error) {
    refused.push(`${key}: ${error.message}`);
  }
}
const keyOf = (id) => Object.keys(ids).find((key) => ids[key] === id);
for (const search of searches) {
  const { results } = await memory.search(search.text, { filters: { user_id: search.user_id }, topK: 9, threshold: 0 });
  search.found = results.map(({ id }) => keyOf(id));
  search.scores = results.map(({ score }) => score);
}
console.log(JSON.stringify({ collection: 'memories', ids, searches, refused }));
process.exit();
