import { MEM0_READ_ONLY } from './mem0.ts';
import type { Preset } from './preset.ts';

/**
 * mem0ai 3.3.1 for TypeScript, src/oss/src/vector_stores/supabase.ts. The column `updated_at` never changes after the
 * insert; the time of an update is in the metadata.
 */
export const mem0Supabase: Preset = {
  table: 'memories',
  id: ['id'],
  new_ids: 'text',
  embedding: 'embedding',
  fields: {
    content: `metadata->>'data'`,
    user_id: `metadata->>'user_id'`,
    created_at: 'created_at',
    updated_at: `metadata->>'updated_at'`,
  },
  read_only: MEM0_READ_ONLY,
};
