import type { Preset } from './preset.ts';

/**
 * `PgvectorDocumentStore` of pgvector-haystack: `haystack_integrations/document_stores/pgvector/_base.py` at 19aa3de,
 * `converters.py` at 00e42c6. Ids are hashes of the documents, but its reader takes any text.
 */
export const haystack: Preset = {
  table: 'haystack_documents',
  id: ['id'],
  new_ids: 'text',
  embedding: 'embedding',
  fields: { content: 'content', user_id: "meta->>'user_id'" },
};
