import type { Metadata } from '../client/client.ts';

/** The metadata keys that a library writes. Settings may name others. */
export interface Preset {
  readonly text?: string;
  readonly user?: string;
  readonly created?: string;
  readonly updated?: string;
  /** Reads the text, if it is not simply the value of a key. */
  readonly textIn?: (metadata: Metadata) => unknown;
  /** Why the gateway must not write into such an index. Unset: it may. */
  readonly read_only?: string;
}

/** Most libraries leave the user to the application: this key, unless `user_field` names another. */
const USER = 'user_id';

const MEM0 = 'mem0 reads keys from every record (such as a hash) that only mem0 can write';

/** The keys are from the sources of the libraries; `docs/integrations/mapped-indexes.md` names the versions. */
const TABLE = {
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
    read_only: 'the index makes its vectors from the text itself, so records must be written through its own API',
  },
  /** The settings name the keys. */
  custom: {},
} satisfies Readonly<Record<string, Preset>>;

export type PresetName = keyof typeof TABLE;
export const PRESETS: Readonly<Record<PresetName, Preset>> = TABLE;
export const PRESET_NAMES = Object.keys(PRESETS) as [PresetName, ...PresetName[]];

/** LlamaIndex stores a node as JSON with its text, or in newer versions with a text resource; old versions only the text. */
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
