import type { Preset } from './preset.ts';

/**
 * @mastra/pg, stores/pg/src/vector/index.ts: a table for each of its indexes. What metadata holds is up to the
 * application; `text` is the key of Mastra's guides.
 */
export const mastra: Preset = {
  id: ['vector_id'],
  new_ids: 'text',
  embedding: 'embedding',
  fields: { content: `metadata->>'text'`, user_id: `metadata->>'user_id'` },
};
