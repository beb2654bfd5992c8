import { langgraphStore } from './langgraph-store.ts';
import type { Preset } from './preset.ts';

/**
 * LangGraph for TypeScript: @langchain/langgraph-checkpoint-postgres 1.0.5, src/store/store-migrations.ts. As the store
 * for Python, with other names, and the parts of the namespace joined by colons.
 */
export const langgraphStoreJs: Preset = {
  ...langgraphStore,
  id: ['namespace_path', 'key'],
  fields: { ...langgraphStore.fields, user_id: 'namespace_path' },
  vectors: {
    table: 'store_vectors',
    on: ['namespace_path', 'key'],
    which: { column: 'field_path', value: 'text' },
  },
};
