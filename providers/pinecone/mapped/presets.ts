import type { Metadata } from '../client/client.ts';
import type { PresetName } from './preset-names.ts';

/** Under which metadata keys the records of a library are found, unless settings name others. */
export interface Preset {
  readonly text?: string;
  readonly user?: string;
  readonly created?: string;
  readonly updated?: string;
  /** Where the text is not simply the value of a key. */
  readonly textIn?: (metadata: Metadata) => unknown;
  /** Why records of ours would not do in such an index; undefined: they would. */
  readonly read_only?: string;
}

/** Most libraries leave the owner to their caller: under this key unless `user_field` names another. */
const USER = 'user_id';

const MEM0 = 'mem0 reads keys of its own from every record (a hash, for one), which only mem0 can write';

/** As the libraries' own sources write them (`docs/integrations/mapped-indexes.md` says which). */
export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  langchain: { text: 'text', user: USER },
  llamaindex: {
    text: 'text',
    user: USER,
    textIn: nodeText,
    read_only: 'LlamaIndex reads a whole node from "_node_content" and fails on records without it',
  },
  mem0: { text: 'data', user: USER, created: 'created_at', updated: 'updated_at', read_only: MEM0 },
  'mem0-ts': { text: 'data', user: USER, created: 'createdAt', updated: 'updatedAt', read_only: MEM0 },
  haystack: { text: 'content', user: USER },
  'spring-ai': { text: 'document_content', user: USER },
  integrated: {
    text: 'chunk_text',
    user: USER,
    read_only: 'the index makes its vectors from the text itself, so its records are written through it alone',
  },
  custom: {},
};

/** LlamaIndex keeps a node as JSON: with its text, or in newer kinds of nodes a text resource. Long ago it kept the text alone. */
function nodeText(metadata: Metadata): unknown {
  const { _node_content: json, text } = metadata;
  if (typeof json !== 'string') return text;
  try {
    const node = JSON.parse(json) as { text?: unknown; text_resource?: { text?: unknown } } | null;
    return node?.text || node?.text_resource?.text || text;
  } catch {
    return text;
  }
}
