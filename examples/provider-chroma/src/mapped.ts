import type { Metadata } from 'chromadb';
import { type ListQuery, type Memory, newestFirst, type Position, type ProviderMethods } from 'omp-gateway/provider';
import { RECORD, type Row, type Store } from './chroma.ts';
import type { Options } from './options.ts';
import { findAll, list, MAX_RESULTS, type Shelf, search } from './reading.ts';

interface Preset {
  /** What the library calls its collection unless it is told otherwise. */
  readonly collection: string;
  /** Metadata keys. Without `text` it is in the document; without `created` the library stores no times. */
  readonly text?: string;
  readonly created?: string;
  readonly updated?: string;
}

/**
 * langchain-ai/langchain, libs/partners/chroma, and langchain-community's `vectorstores/chroma` for JavaScript, which calls its collections
 * `langchain-` and a UUID; mem0ai/mem0, mem0/vector_stores/chroma.py.
 */
export const PRESETS: Readonly<Record<NonNullable<Options['preset']>, Preset>> = {
  langchain: { collection: 'langchain' },
  mem0: { collection: 'mem0', text: 'data', created: 'created_at', updated: 'updated_at' },
};

/** What the spaces of Chroma measure, for vectors of length 1, as embedding models make them. */
const COSINES: Readonly<Record<string, (distance: number) => number>> = {
  cosine: (distance) => 1 - distance,
  ip: (distance) => 1 - distance,
  l2: (squared) => 1 - squared / 2,
};

interface MappedOptions extends Pick<Options, 'user_field'> {
  readonly preset: Preset;
  readonly space: string;
}

/** Only reads: the library stores more in a record than a memory has. Throws a plain `Error` for a space that is not known. */
export function createMapped(store: Store, { preset, space, user_field }: MappedOptions): ProviderMethods {
  const toCosine = COSINES[space];
  if (!toCosine) throw new Error(`the collection measures by "${space}", which this provider cannot turn into a score`);
  const timeIn = (metadata: Metadata, key = ''): string => {
    const time = Date.parse(String(metadata[key]));
    return new Date(Number.isNaN(time) ? 0 : time).toISOString();
  };
  const toMemory = ({ id, document, metadata }: Row): Memory | undefined => {
    const content = preset.text === undefined ? document : metadata?.[preset.text];
    const user_id = metadata?.[user_field];
    if (!metadata || typeof content !== 'string' || typeof user_id !== 'string' || !/\S/.test(content)) return undefined;
    const created_at = timeIn(metadata, preset.created);
    const updated = preset.updated !== undefined && metadata[preset.updated] != null;
    return {
      ...{ id, content, user_id, created_at, scope: null, tags: [], source: null, confidence: null },
      ...{ valid_from: null, valid_to: null, supersedes: [], extensions: {}, embedding_model: null, status: null },
      updated_at: updated ? timeIn(metadata, preset.updated) : created_at,
    };
  };
  const isListed = ({ since = '', until, after }: ListQuery, position: Position) =>
    position.created_at >= since &&
    (until === undefined || position.created_at <= until) &&
    (after === undefined || newestFirst(after, position) < 0);
  const shelf: Shelf = {
    store,
    user_field,
    toMemory,
    toCosine,
    // The time of a record is a text, which Chroma cannot compare.
    async inOrder(query, call) {
      const rows = await findAll(store, { where: { [user_field]: query.user_id }, max: MAX_RESULTS }, ['metadatas'], call);
      const positions = rows.map(({ id, metadata }) => ({ id, created_at: timeIn(metadata ?? {}, preset.created) }));
      return positions.filter((position) => isListed(query, position)).sort(newestFirst).map(({ id }) => id);
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
      const memory = (await store.get({ ids: [id] }, RECORD, call)).map(toMemory)[0];
      return memory && (users === null || users.includes(memory.user_id)) ? memory : undefined;
    },
    list: (query, call) => list(shelf, query, call),
    search: (query, call) => search(shelf, query, call),
    ping: async (call) => void (await store.get({ ids: ['ping'] }, [], call)),
    close: async () => {},
  };
}
