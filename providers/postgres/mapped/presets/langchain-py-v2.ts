import type { Preset } from './preset.ts';

/**
 * `PGVectorStore` of langchain-postgres, in a table of the user's own naming: `langchain_postgres/v2/engine.py` at
 * 0453818, `v2/async_vectorstore.py` at 0055983. The metadata column is json, not jsonb.
 */
export const langchainPyV2: Preset = {
  id: ['langchain_id'],
  new_ids: 'uuid',
  embedding: 'embedding',
  fields: { content: 'content', user_id: "langchain_metadata->>'user_id'" },
};
