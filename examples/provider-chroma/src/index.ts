import type { ChromaClient } from 'chromadb';
import { backgroundCall, defineProvider, type EmbedderIdentity, MAX_RECORD_BYTES } from 'omp-gateway/provider';
import { ask, createClient } from './chroma.ts';
import { createMapped, PRESETS } from './mapped.ts';
import { createMemories } from './memories.ts';
import { optionsSchema } from './options.ts';

/** A collection of Chroma: the gateway's own, or with `preset` one that a library fills, which is only read. */
export default defineProvider({
  specVersion: 2,
  name: 'chroma',
  options: optionsSchema,
  async open(options, { embedder, max_record_bytes = MAX_RECORD_BYTES }) {
    if (!embedder) throw new Error('Chroma searches by vectors only; set OMP_SEARCH_MODE to vector or hybrid');
    const { collection: name, preset, user_field, max_listed } = options;
    const client = createClient(options);
    if (preset !== undefined) {
      const wanted = { name: name ?? PRESETS[preset].collection };
      const collection = await ask(backgroundCall('start'), () => client.getCollection(wanted));
      return createMapped(collection, { preset: PRESETS[preset], user_field });
    }
    const collection = await openCollection(client, name ?? 'omp-memories', embedder);
    return createMemories(collection, { model: embedder.model, max_listed, max_record_bytes });
  },
  diagnose: (options) =>
    ask(backgroundCall('doctor'), () => createClient(options).heartbeat()).then(
      () => [{ area: 'connection', level: 'ok', message: 'Chroma answers; the start checks its collection' }],
      ({ message }: Error) => [{ area: 'connection', level: 'problem', message }],
    ),
});

/** Throws for an operator unless the collection fits: Chroma returns an existing one with whatever settings it has. */
async function openCollection(client: ChromaClient, name: string, { model, dimensions }: EmbedderIdentity) {
  const collection = await ask(backgroundCall('start'), () =>
    client.getOrCreateCollection({
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
