import { langchainJs } from './langchain-js.ts';
import type { Preset } from './preset.ts';

/**
 * n8n, packages/@n8n/nodes-langchain/nodes/vector_store/VectorStorePGVector/VectorStorePGVector.node.ts: LangChain's
 * class with names of its own. Collections are off unless a workflow turns them on.
 */
export const n8n: Preset = {
  ...langchainJs,
  table: 'n8n_vectors',
  collection: { column: 'collection_id', named: { table: 'n8n_vector_collections', key: 'uuid', name: 'name' } },
};
