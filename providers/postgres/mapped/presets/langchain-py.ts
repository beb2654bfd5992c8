import type { Preset } from './preset.ts';

/**
 * `PGVector` of langchain-postgres: `langchain_postgres/vectorstores.py` at 7129e2b and 01b356e. Its reader takes a
 * collection by name and shows `id`, `document` and `cmetadata` as they are, so rows of ours do as long as they are in
 * the collection.
 */
export const langchainPy: Preset = {
  table: 'langchain_pg_embedding',
  id: ['id'],
  new_ids: 'text',
  embedding: 'embedding',
  fields: { content: 'document', user_id: "cmetadata->>'user_id'" },
  collection: {
    column: 'collection_id',
    named: { table: 'langchain_pg_collection', key: 'uuid', name: 'name' },
    default: 'langchain',
  },
};
