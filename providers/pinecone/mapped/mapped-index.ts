import {
  type Call,
  type EmbedderIdentity,
  examineMapped,
  type Finding,
  type Log,
  MAX_RECORD_BYTES,
  mappedMethods,
  type ProviderMethods,
} from '#provider';
import { MAX_CONTENT_LENGTH, type Service } from '../client/client.ts';
import { PROVIDER } from '../client/pinecone-errors.ts';
import type { Options } from '../pinecone-options.ts';
import { ANSWERS, atStartup, finding } from '../startup.ts';
import { createMappedCollection } from './mapped-collection.ts';
import { PRESETS } from './presets.ts';

interface Context {
  readonly embedder: EmbedderIdentity;
  readonly log: Log;
}

/** What the kit needs. Throws a plain `Error` for settings that contradict each other. */
async function opened(service: Service, options: Options, context: Context, call: Call) {
  if (options.layout !== 'single')
    throw new Error(
      'OMP_PINECONE_LAYOUT has no effect with OMP_PINECONE_PRESET; OMP_PINECONE_NAMESPACE names the only namespace',
    );
  const { preset = 'custom', user_field } = options;
  const user = user_field ?? PRESETS[preset].user ?? '';
  const spec = { name: PROVIDER, title: 'Pinecone', noun: 'index', presets: PRESETS, options };
  return { spec, collection: await createMappedCollection(service, options, { ...context, user }, call) };
}

const warningsOf = ({ lists, listsIds }: { readonly lists: boolean; readonly listsIds: boolean }): string[] => [
  ...(lists ? [] : ['it has an API older than 2025-10 and cannot list the memories of a user']),
  ...(listsIds ? [] : ['it cannot list its ids, so its memories can be neither exported nor deleted by retention']),
];

/**
 * Opens a mapped index, read-only unless `writable`. Throws a plain `Error` for operators if the settings or the index do
 * not allow it.
 */
export const openMappedIndex = (service: Service, options: Options, context: Context): Promise<ProviderMethods> =>
  atStartup(async (call) => {
    const { spec, collection } = await opened(service, options, context, call);
    const { can, close } = collection;
    const mapped = { ...context, model: null, max_record_bytes: MAX_RECORD_BYTES };
    const methods = await mappedMethods(collection, spec, mapped, call).catch(async (error) => {
      await close();
      throw error;
    });
    for (const warning of warningsOf(can)) context.log.warn({}, `this mapped index: ${warning}`);
    // An index shows writes late: what belongs to a user is not counted, so that nothing is erased.
    const { capabilities, list, export: exportPart, erase: _, holdings: __, ...rest } = methods;
    return {
      ...rest,
      capabilities: {
        ...capabilities,
        temporal: can.lists && capabilities?.temporal === true,
        max_content_length: options.writable ? MAX_CONTENT_LENGTH : null,
        // A list reads at most `max_listed` and reports more itself.
        max_list_scan: null,
      },
      ...(can.lists && list && { list }),
      ...(can.listsIds && exportPart && { export: exportPart }),
      // A statistics request would list every namespace.
      stats: () => ({ queue_length: service.queueLength() }),
    };
  });

/** What `doctor` finds. Reads only. */
export const diagnoseMappedIndex = (service: Service, options: Options, context: Context): Promise<Finding[]> =>
  atStartup(async (call) => {
    const { spec, collection } = await opened(service, options, context, call);
    const { embedder } = context;
    try {
      const found = await examineMapped(collection, { ...spec, embedder }, call);
      const { noMemories, warnings, mapping } = found;
      return [
        finding('connection', 'ok', `${ANSWERS}, and measures by ${collection.metric}`),
        noMemories === undefined
          ? finding('mapping', 'ok', `its records can be found by "${mapping.user}"`)
          : finding('mapping', 'problem', noMemories),
        finding(
          'embedding',
          'ok',
          `vectors of ${embedder.dimensions} dimensions; the index does not say whether "${embedder.model}" made them`,
        ),
        ...[...warnings, ...warningsOf(collection.can)].map((warning) => finding('mapping', 'warning', warning)),
      ];
    } finally {
      await collection.close();
    }
  });
