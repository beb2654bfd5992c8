import type { Preset } from './preset.ts';

/**
 * The guide "RAG Agent" of Vercel's AI SDK, content/cookbook/00-guides/01-rag-chatbot.mdx: `lib/db/schema/embeddings.ts`.
 * Rows belong to nobody there, so settings have to say whose they are.
 */
export const vercelDrizzle: Preset = {
  table: 'embeddings',
  id: ['id'],
  new_ids: 'text',
  embedding: 'embedding',
  fields: { content: 'content' },
};
