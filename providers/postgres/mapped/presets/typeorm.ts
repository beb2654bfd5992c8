import type { Preset } from './preset.ts';

/** LangChain.js: @langchain/community 1.1.29, src/vectorstores/typeorm.ts. */
export const typeorm: Preset = {
  table: 'documents',
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'embedding',
  fields: { content: '"pageContent"', user_id: `metadata->>'user_id'` },
};
