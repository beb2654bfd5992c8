import type { Preset } from './preset.ts';

/** LlamaIndex.TS: @llamaindex/postgres 0.0.66, src/PGVectorStore.ts; the name of the collection is from @llamaindex/core. */
export const llamaindexTs: Preset = {
  table: 'llamaindex_embedding',
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'embeddings',
  fields: { content: 'document', user_id: `metadata->>'user_id'`, created_at: `metadata->>'create_date'` },
  collection: { column: 'collection', default: 'data' },
};
