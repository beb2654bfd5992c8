import type { Preset } from '#provider';

/** Most libraries leave the user to the application: this key, unless `user_field` names another. */
const user = 'user_id';
const MEM0 = 'mem0 reads keys from every record (such as a hash) that only mem0 can write';

/** The keys are from the sources of the libraries; `docs/integrations/mapped-indexes.md` names the versions. */
const TABLE = {
  langchain: { library: 'LangChain', text: 'text', user },
  llamaindex: {
    ...{ library: 'LlamaIndex', text: 'text', node: '_node_content', user },
    read_only: 'LlamaIndex reads a whole node from "_node_content" and fails on records without it',
  },
  mem0: {
    ...{ library: 'mem0 for Python', text: 'data', user, created: 'created_at', updated: 'updated_at' },
    read_only: MEM0,
  },
  'mem0-ts': {
    ...{ library: 'mem0 for TypeScript', text: 'data', user, created: 'createdAt', updated: 'updatedAt' },
    read_only: MEM0,
  },
  haystack: { library: 'Haystack', text: 'content', user },
  'spring-ai': { library: 'Spring AI', text: 'document_content', user },
  integrated: {
    ...{ library: 'integrated inference of Pinecone', text: 'chunk_text', user },
    read_only: 'the index makes its vectors from the text itself, so records must be written through its own API',
  },
  /** The settings name the keys. */
  custom: { library: 'another application' },
} satisfies Readonly<Record<string, Preset>>;

export type PresetName = keyof typeof TABLE;
export const PRESETS: Readonly<Record<PresetName, Preset>> = TABLE;
export const PRESET_NAMES = Object.keys(PRESETS) as [PresetName, ...PresetName[]];
