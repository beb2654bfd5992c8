import type { Preset } from './preset.ts';

export const MEM0_READ_ONLY =
  'mem0 keeps a hash beside each text and takes texts for known by it; of a text that is changed here it would go on knowing the old one';

/**
 * mem0ai 3.3.1 for TypeScript, src/oss/src/vector_stores/pgvector.ts and memory/index.ts; for Python,
 * mem0/vector_stores/pgvector.py and mem0/memory/main.py. One table, one payload; but Python writes `created_at` and
 * `updated_at`, TypeScript `createdAt` and `updatedAt`. The table is TypeScript's and that of mem0's server.
 */
export const mem0: Preset = {
  table: 'memories',
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'vector',
  fields: {
    content: `payload->>'data'`,
    user_id: `payload->>'user_id'`,
    created_at: `payload->>'created_at'`,
    updated_at: `payload->>'updated_at'`,
  },
  read_only: MEM0_READ_ONLY,
};
