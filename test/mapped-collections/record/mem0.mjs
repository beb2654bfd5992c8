import { register } from 'node:module';
import { answer, attempt } from './commands.mjs';

// It imports SQLite, which has to be compiled, for a history that is turned off here: an empty class.
const HOOK = `export const resolve = (specifier, context, next) => specifier === 'better-sqlite3'
  ? { url: 'data:text/javascript,export default class {}', shortCircuit: true } : next(specifier, context);`;
register(`data:text/javascript,${encodeURIComponent(HOOK)}`);
const { Memory } = await import('mem0ai/oss');

const { DATABASE: provider, DATABASE_URL: url, OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
const memory = new Memory({
  vectorStore: { provider, config: { url, collectionName: 'memories', dimension: 8, embeddingModelDims: 8 } },
  embedder: { provider: 'openai', config: { apiKey, baseURL, model: 'eight', embeddingDims: 8 } },
  llm: { provider: 'openai', config: { apiKey, baseURL } },
  disableHistory: true,
});
const commands = {
  async add(text, { user_id: userId, ...metadata }) {
    // A memory of mem0 has a user, an agent or a run.
    const owner = userId ? { userId } : { agentId: 'agent' };
    return (await memory.add(text, { ...owner, metadata, infer: false })).results[0].id;
  },
  change: (id, text) => memory.update(id, { text }),
  remove: (id) => memory.delete(id),
  async search(text, user_id) {
    const { results } = await memory.search(text, { filters: { user_id }, topK: 9, threshold: 0 });
    return results.map(({ memory: content, score, metadata }) => [content, score, metadata]);
  },
};
const recorded = await attempt(commands.add);
await answer({ collection: 'memories', ...recorded }, commands);
