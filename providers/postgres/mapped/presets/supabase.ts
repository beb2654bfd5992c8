import type { Preset } from './preset.ts';

/**
 * The table of the Supabase quickstart for LangChain, used by `SupabaseVectorStore` in both languages and by Flowise and
 * n8n: SQL in langchain-ai/docs `integrations/vectorstores/supabase.mdx` at 37d517f, rows in langchainjs
 * `libs/langchain-community/src/vectorstores/supabase.ts` at 529d4ee.
 */
export const supabase: Preset = {
  table: 'documents',
  id: ['id'],
  new_ids: 'database',
  embedding: 'embedding',
  fields: { content: 'content', user_id: "metadata->>'user_id'" },
};
