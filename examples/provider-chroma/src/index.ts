import type { Collection } from 'chromadb';
import {
  backgroundCall,
  defineProvider,
  type EmbedderIdentity,
  type Finding,
  MAX_RECORD_BYTES,
  type ProviderMethods,
} from 'omp-gateway/provider';
import { ask, createClient } from './chroma.ts';
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
    const collection = await openCollection(options, embedder, 'create');
    const { preset, user_field, max_listed } = options;
    return preset === undefined
      ? createMemories(collection, { model: embedder.model, max_listed, max_record_bytes })
      : createMapped(collection, { preset: PRESETS[preset], user_field });
  },
  async diagnose(options, { embedder }): Promise<Finding[]> {
    const report = (level: Finding['level'], message: string): Finding[] => [{ area: 'connection', level, message }];
    if (!embedder) return report('warning', 'without an embedder, the collection was not checked');
    return openCollection(options, embedder, 'get').then(
      ({ name }) => report('ok', `Chroma answers and has the collection "${name}"`),
      (error: Error) => report('problem', error.message),
    );
  },
});

/** Throws for an operator unless the collection fits: Chroma returns an existing one with whatever settings it has. */
async function openCollection(
  options: Options,
  { model, dimensions }: EmbedderIdentity,
  how: 'get' | 'create',
): Promise<Collection> {
  const client = createClient(options);
  const call = backgroundCall('start');
  const { preset, collection: name = preset === undefined ? 'omp-memories' : PRESETS[preset].collection } = options;
  if (preset !== undefined) return ask(call, () => client.getCollection({ name }));
  const collection = await ask(call, () =>
    how === 'get'
      ? client.getCollection({ name })
      : client.getOrCreateCollection({
          name,
          embeddingFunction: null,
          metadata: { omp_model: model, omp_dimensions: dimensions },
          configuration: { hnsw: { space: 'cosine' } },
        }),
  );
  const { omp_model, omp_dimensions } = collection.metadata ?? {};
  if (omp_model === model && omp_dimensions === dimensions) return collection;
  throw new Error(
    omp_model === undefined
      ? `the collection "${name}" was not made by the gateway; name another one, or read it with a preset`
      : `the vectors of the collection "${name}" are from "${omp_model}" (${omp_dimensions} dimensions), not from "${model}" ` +
          `(${dimensions}); name another collection, and move the memories with omp-gateway export and import`,
  );
}
