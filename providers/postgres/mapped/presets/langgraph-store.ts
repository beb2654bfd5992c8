import type { Preset } from './preset.ts';

/**
 * LangGraph for Python: libs/checkpoint-postgres/langgraph/store/postgres/base.py. The namespace, its parts joined by
 * dots, is `prefix`. An item has a vector for each indexed field.
 */
export const langgraphStore: Preset = {
  table: 'store',
  id: ['prefix', 'key'],
  embedding: 'embedding',
  fields: {
    content: `value->>'text'`,
    user_id: 'prefix',
    created_at: 'created_at',
    updated_at: 'updated_at',
    valid_to: 'expires_at',
  },
  vectors: { table: 'store_vectors', on: ['prefix', 'key'], which: { column: 'field_name', value: 'text' } },
  read_only: 'an item is kept in two tables, which a write would have to keep in step',
};
