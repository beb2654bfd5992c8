import type { Preset } from './preset.ts';

/**
 * @langchain/community 1.1.29, src/vectorstores/pgvector.ts; @langchain/pgvector has the same class. The owner is a key
 * of the metadata that the application sets. Collections and their table are options of the class without a default;
 * here the table has the name of LangChain's own examples.
 */
export const langchainJs: Preset = {
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'embedding',
  fields: { content: 'text', user_id: `metadata->>'user_id'` },
  collection: { column: 'collection_id', named: { table: 'collections', key: 'uuid', name: 'name' } },
};
