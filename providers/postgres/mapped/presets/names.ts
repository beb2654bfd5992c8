/** Whose rows a table holds; `custom` names the columns itself. */
export const PRESET_NAMES = [
  'langchain-py',
  'langchain-py-v2',
  'langchain-js',
  'n8n',
  'typeorm',
  'llamaindex-py',
  'llamaindex-ts',
  'mem0',
  'mem0-supabase',
  'supabase',
  'vecs',
  'spring-ai',
  'haystack',
  'vercel-drizzle',
  'langgraph-store',
  'langgraph-store-js',
  'mastra',
  'custom',
] as const;
export type PresetName = (typeof PRESET_NAMES)[number];
