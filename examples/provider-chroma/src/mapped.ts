import type { Collection, Metadata } from 'chromadb';
import { type Memory, newestFirst, type ProviderMethods } from 'omp-gateway/provider';
import { getRows, RECORD, type Row } from './chroma.ts';
import type { Options } from './options.ts';
import { findAll, MAX_RESULTS, readingVerbs, type Shelf } from './reading.ts';

/**
 * What the library calls its collection unless it is told otherwise, and metadata keys. Without `text` the text is in the document; without
 * `created` the library stores no times.
 */
type Preset = {
  readonly collection: string;
  readonly text?: string;
  readonly created?: string;
  readonly updated?: string;
};

/**
 * langchain-ai/langchain, libs/partners/chroma, and langchain-community's `vectorstores/chroma` for JavaScript, which calls its collections
 * `langchain-` and a UUID; mem0ai/mem0, mem0/vector_stores/chroma.py.
 */
export const PRESETS: Readonly<Record<NonNullable<Options['preset']>, Preset>> = {
  langchain: { collection: 'langchain' },
  mem0: { collection: 'mem0', text: 'data', created: 'created_at', updated: 'updated_at' },
};

/** Only reads: the library stores more in a record than a memory has. */
export function createMapped(
  collection: Collection,
  { preset, user_field }: { readonly preset: Preset; readonly user_field: string },
): ProviderMethods {
  const { space } = collection.configuration.hnsw ?? { space: 'l2' };
  const timeIn = (metadata: Metadata, key = ''): string => {
    const time = Date.parse(String(metadata[key]));
    return new Date(Number.isNaN(time) ? 0 : time).toISOString();
  };
  const toMemory = ({ id, document, metadata }: Row): Memory | undefined => {
    const content = preset.text === undefined ? document : metadata?.[preset.text];
    const user_id = metadata?.[user_field];
    if (!metadata || !isText(content) || !isText(user_id)) return undefined;
    const created_at = timeIn(metadata, preset.created);
    const updated = preset.updated !== undefined && metadata[preset.updated] != null;
    return {
      ...{ id, content, user_id, created_at, scope: null, tags: [], source: null, confidence: null },
      ...{ valid_from: null, valid_to: null, supersedes: [], extensions: {}, embedding_model: null, status: null },
      updated_at: updated ? timeIn(metadata, preset.updated) : created_at,
    };
  };
  const shelf: Shelf = {
    collection,
    user_field,
    toMemory,
    // For vectors of length 1, as embedding models make them.
    toCosine: (distance) => 1 - (space === 'l2' ? distance / 2 : distance),
    // The time of a record is a text, which Chroma cannot compare.
    async inOrder({ user_id, since = '', until = '9999', after }, call) {
      const rows = await findAll(
        collection,
        { where: { [user_field]: user_id }, max: MAX_RESULTS },
        ['metadatas'],
        call,
      );
      return rows
        .map(({ id, metadata }) => ({ id, created_at: timeIn(metadata ?? {}, preset.created) }))
        .filter(({ created_at }) => created_at >= since && created_at <= until)
        .filter((position) => after === undefined || newestFirst(after, position) < 0)
        .sort(newestFirst)
        .map(({ id }) => id);
    },
  };
  return {
    capabilities: {
      vector_search: true,
      temporal: preset.created !== undefined,
      max_search_results: MAX_RESULTS,
      explain: true,
    },
    read_only: 'the collection belongs to another application',
    async get({ id, users }, call) {
      const memory = (await getRows(collection, { ids: [id] }, RECORD, call)).map(toMemory)[0];
      return memory && (users === null || users.includes(memory.user_id)) ? memory : undefined;
    },
    ...readingVerbs(shelf),
  };
}

const isText = (value: unknown): value is string => typeof value === 'string' && /\S/.test(value);
