import {
  type Call,
  collectionMethods,
  defineProvider,
  type EmbedderIdentity,
  type Finding,
  type Log,
  MAX_RECORD_BYTES,
  type ProviderContext,
  type ProviderMethods,
} from '#provider';
import { connect, MAX_CONTENT_LENGTH, MAX_TOP_K, type Service } from './client/client.ts';
import { PROVIDER } from './client/pinecone-errors.ts';
import { userFilter } from './filter.ts';
import { createConsistency } from './gateway-index/consistency.ts';
import { createGatewayCollection } from './gateway-index/gateway-collection.ts';
import { createIds, createNamespaces } from './gateway-index/ids.ts';
import { diagnoseMappedIndex, openMappedIndex } from './mapped/mapped-index.ts';
import { createOverlay } from './overlay.ts';
import { Options } from './pinecone-options.ts';
import { someVector } from './score.ts';
import { ANSWERS, atStartup, checkedMetric, finding, INDEX_RECORD, readIndex, readOrDescribeIndex } from './startup.ts';

/** An index on Pinecone: the gateway's index, or with a `preset` a mapped index, which another application fills. */
export default defineProvider({
  specVersion: 2,
  name: PROVIDER,
  options: Options,
  async open(options, context): Promise<ProviderMethods> {
    const { embedder } = context;
    if (!embedder) {
      throw new Error('Pinecone searches by vectors only; set OMP_SEARCH_MODE to vector, or choose another provider');
    }
    const service = connect(options);
    return (options.preset ? openMappedIndex : openGatewayIndex)(service, options, { embedder, log: context.log });
  },
  diagnose,
});

async function openGatewayIndex(
  service: Service,
  options: Options,
  { embedder, log }: { readonly embedder: EmbedderIdentity; readonly log: Log },
): Promise<ProviderMethods> {
  const { settle_ms, consistency_wait_ms, max_scan } = options;
  const { model, dimensions } = embedder;
  const { metric, secret, moved } = await atStartup(async (call) => ({
    metric: await checkedMetric(service, options, dimensions, call),
    ...(await readOrDescribeIndex(service, options, embedder, call)),
  }));
  const consistency = createConsistency({
    secret,
    wait_ms: consistency_wait_ms,
    look: createLook(service, dimensions),
  });
  const overlay = createOverlay({ settle_ms, shows: consistency.shows, log });
  const ids = createIds(secret);
  const namespaces = createNamespaces(options.layout, options.namespace);
  const collection = createGatewayCollection({
    ...{ service, ids, namespaces, overlay, consistency, metric, moved },
    ...{ settle_ms, consistency_wait_ms },
  });
  const { erase, ...methods } = collectionMethods(
    { collection, model, dimensions, scoped: false, max_scan },
    MAX_RECORD_BYTES,
  );
  return {
    capabilities: {
      vector_search: true,
      keyword_search: false,
      temporal: true,
      scopes: 'tags',
      tags: true,
      max_content_length: MAX_CONTENT_LENGTH,
      supports_supersession: true,
      max_search_results: MAX_TOP_K,
      max_list_scan: max_scan,
      consistency_tokens: true,
      etags: false,
      explain: true,
    },
    ...methods,
    erase: async (request, call) => (await erase(request, call)).memories,
    stats: () => ({ queue_length: service.queueLength() }),
    ping: async (call) => void (await service.fetch(namespaces.base, [INDEX_RECORD], call)),
    close: async () => overlay.close(),
  };
}

/** Sends a query that matches nothing, since no user has an empty name, and returns its position. */
function createLook(service: Service, dimensions: number) {
  const request = { vector: someVector(dimensions), topK: 1, filter: userFilter('', []), includeMetadata: false };
  return async (namespace: string, call: Call) => (await service.query(namespace, request, call)).indexedLsn;
}

/**
 * Checks by reading only: whether the index answers, stores the embedder's vectors, and holds those of the same model; not
 * whether the key may write. Without an embedder only the first.
 */
async function diagnose(options: Options, { embedder, log }: ProviderContext): Promise<Finding[]> {
  try {
    const service = connect(options);
    if (!embedder) {
      await atStartup((call) => service.stats(call));
      return [
        finding(
          'connection',
          'ok',
          `${ANSWERS}; its vectors were not compared with the embedder, which does not answer`,
        ),
      ];
    }
    return await (options.preset ? diagnoseMappedIndex : diagnoseGatewayIndex)(service, options, { embedder, log });
  } catch (error) {
    return [finding('connection', 'problem', error instanceof Error ? error.message : String(error))];
  }
}

async function diagnoseGatewayIndex(
  service: Service,
  options: Options,
  { embedder }: { readonly embedder: EmbedderIdentity },
): Promise<Finding[]> {
  const { metric, found } = await atStartup(async (call) => ({
    metric: await checkedMetric(service, options, embedder.dimensions, call),
    found: await readIndex(service, options, embedder, call),
  }));
  const state = found ? `made by "${embedder.model}"` : 'none yet: the gateway records the model at its first start';
  return [
    finding('connection', 'ok', `${ANSWERS}, and measures by ${metric}; whether the key may write was not tried`),
    finding('embedding', 'ok', `the vectors in the namespace "${options.namespace}" are ${state}`),
  ];
}
