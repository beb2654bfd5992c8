import type { Collection } from 'chromadb';
import {
  backgroundCall,
  defineProvider,
  type EmbedderIdentity,
  type Finding,
  MAX_RECORD_BYTES,
  type ProviderMethods,
} from 'omp-gateway/provider';
import { ask, createClient, createStore } from './chroma.ts';
import { createMapped, PRESETS } from './mapped.ts';
import { createMemories } from './memories.ts';
import { type Options, optionsSchema } from './options.ts';

/** A collection of Chroma: the gateway's own, or with `preset` one that a library fills, which is only read. */
export default defineProvider({
  specVersion: 1,
  name: 'chroma',
  options: optionsSchema,
  async open(options, { embedder, max_record_bytes = MAX_RECORD_BYTES }): Promise<ProviderMethods> {
    if (!embedder) throw new Error('Chroma searches by vectors only; set OMP_SEARCH_MODE to vector or hybrid');
    const collection = await openCollection(options, embedder);
    const store = createStore(collection);
    if (options.preset === undefined) {
      return createMemories(store, { model: embedder.model, max_listed: options.max_listed, max_record_bytes });
    }
    const { user_field, preset } = options;
    const space = collection.configuration.hnsw?.space ?? 'l2';
    return createMapped(store, { preset: PRESETS[preset], space, user_field });
  },
  async diagnose(options, { embedder }): Promise<Finding[]> {
    if (!embedder) return [];
    try {
      const { name } = await openCollection(options, embedder);
      return [{ area: 'connection', level: 'ok', message: `Chroma answers and has the collection "${name}"` }];
    } catch (error) {
      return [{ area: 'connection', level: 'problem', message: error instanceof Error ? error.message : String(error) }];
    }
  },
});

/** Throws for an operator unless the collection fits: Chroma returns an existing one with whatever settings it has. */
async function openCollection(options: Options, { model, dimensions }: EmbedderIdentity): Promise<Collection> {
  const client = createClient(options);
  const call = backgroundCall('start');
  const { preset, collection: name = preset === undefined ? 'omp-memories' : PRESETS[preset].collection } = options;
  if (preset !== undefined) {
    return await ask(call, () => client.getCollection({ name })).catch((error: OmpError) => {
      throw isMissing(error) ? new Error(`Chroma has no collection "${name}"; set "collection" to the one that ${preset} fills`) : error;
    });
  }
  const collection = await ask(call, () =>
    client.getOrCreateCollection({
      name,
      embeddingFunction: null,
      metadata: { omp_model: model, omp_dimensions: dimensions },
      configuration: { hnsw: { space: 'cosine' } },
    }),
  );
  const { omp_model: found, omp_dimensions: width } = collection.metadata ?? {};
  if (found === undefined) {
    throw new Error(`the collection "${name}" was not made by the gateway; name another one, or read it with a preset`);
  }
  if (found !== model || width !== dimensions) {
    throw new Error(
      `the vectors of the collection "${name}" are from "${found}" with ${width} dimensions, not from "${model}" with ${dimensions}; ` +
        'name another collection, and move the memories with omp-gateway export and import',
    );
  }
  return collection;
}
