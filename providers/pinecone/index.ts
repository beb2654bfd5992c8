import { toValues } from './score.ts';
import { type Call, defineProvider, type Embedder, type Log, type Provider } from '#contract';
import { atBoot, checkedMetric } from './boot.ts';
import type { Service } from './client/client.ts';
import { connect } from './client/client.ts';
import { PROVIDER } from './client/errors.ts';
import { userFilter } from './filter.ts';
import { createConsistency } from './gateway-index/consistency.ts';
import { createIds, createNamespaces } from './gateway-index/ids.ts';
import { adoptIndex } from './identity.ts';
import { openExisting } from './mapped/provider.ts';
import { Options } from './options.ts';
import { createOverlay } from './overlay.ts';
import { createProvider } from './provider.ts';

/** An index on Pinecone: one of ours, or with a `preset` one that somebody else fills. */
export default defineProvider({
  name: PROVIDER,
  options: Options,
  async open(options, context): Promise<Provider> {
    const { embedder } = context;
    if (!embedder) {
      throw new Error('Pinecone searches by vectors alone; set OMP_SEARCH_MODE to vector, or choose another provider');
    }
    const service = connect(options);
    return options.preset
      ? openExisting(service, options, context)
      : openOwn(service, options, { embedder, log: context.log });
  },
  diagnose: async (options, context) => (await import('./diagnose.ts')).diagnose(options, context),
});

async function openOwn(
  service: Service,
  options: Options,
  { embedder, log }: { readonly embedder: Embedder; readonly log: Log },
): Promise<Provider> {
  const { settle_ms, consistency_wait_ms, max_scan } = options;
  const { model, dimensions } = embedder;
  const { metric, secret } = await atBoot(async (call) => ({
    metric: await checkedMetric(service, options, dimensions, call),
    secret: await adoptIndex(service, options, embedder, call),
  }));
  const consistency = createConsistency({
    secret,
    wait_ms: consistency_wait_ms,
    look: createLook(service, dimensions),
  });
  const own = {
    service,
    ids: createIds(secret),
    namespaces: createNamespaces(options.layout, options.namespace),
    overlay: createOverlay({ settle_ms, shows: consistency.shows, log }),
    consistency,
    model,
    metric,
    max_scan,
  };
  return createProvider(own, embedder, { settle_ms, consistency_wait_ms });
}

/** A query that nothing matches: no user has an empty name. */
function createLook(service: Service, dimensions: number) {
  const { values } = toValues(new Float32Array(dimensions));
  const request = { vector: values, topK: 1, filter: userFilter('', []), includeMetadata: false };
  return async (namespace: string, call: Call) => (await service.query(namespace, request, call)).indexedLsn;
}
