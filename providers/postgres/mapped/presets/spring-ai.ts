import type { Preset } from './preset.ts';

/**
 * `PgVectorStore` of Spring AI 1.x: `org/springframework/ai/vectorstore/pgvector/PgVectorStore.java` at 005c1a4 and
 * 0109464. The metadata column is json, not jsonb. Its reader wants an object there, which rows of ours have: the owner.
 */
export const springAi: Preset = {
  table: 'vector_store',
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'embedding',
  fields: { content: 'content', user_id: "metadata->>'user_id'" },
};
