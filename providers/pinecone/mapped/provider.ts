import { MAX_CONTENT_LENGTH } from '../client/client.ts';
import type { Provider, ProviderContext } from '#contract';
import { MAX_TOP_K, type Service } from '../client/client.ts';
import { PROVIDER } from '../client/errors.ts';
import type { Options } from '../options.ts';
import { createOverlay } from '../overlay.ts';
import { examine } from './examine.ts';
import { createFind } from './find.ts';
import { createList } from './mapped-list.ts';
import { fieldsOf } from './mapped-record.ts';
import { createSearch } from './search.ts';
import { createWrites } from './writes.ts';

/** What no record is called, most likely; it does not matter. */
const NOBODY = 'omp-ping';

/**
 * An index that somebody else fills, read-only unless `writable`. Throws a plain `Error` an operator can act on where the
 * settings or the index do not allow it.
 */
export async function openExisting(
  service: Service,
  options: Options,
  { embedder, log }: Pick<ProviderContext, 'embedder' | 'log'>,
): Promise<Provider> {
  if (!embedder) throw new Error('an index on Pinecone is searched by vectors; set OMP_SEARCH_MODE to vector');
  const { namespace, writable, settle_ms, max_listed } = options;
  const fields = fieldsOf(options);
  const { metric, lists } = await examine(service, options, embedder, fields.user);
  if (!lists) {
    log.warn({}, 'this Pinecone index speaks an API older than 2025-10 and cannot list the memories of a user');
  }
  // Of what is kept for `settle_ms` alone: nobody tells here what queries show.
  const overlay = createOverlay({ settle_ms, shows: () => true, log });
  const existing = { service, namespace, fields, embedder, metric, overlay, max_listed };
  const find = createFind(existing);
  return {
    name: PROVIDER,
    capabilities: {
      vector_search: true,
      keyword_search: false,
      temporal: lists && fields.created !== undefined,
      scopes: 'none',
      tags: fields.tags !== undefined,
      max_content_length: writable ? MAX_CONTENT_LENGTH : null,
      supports_supersession: false,
      max_search_results: MAX_TOP_K,
      // A list never reads more than `max_listed`, and says so itself.
      max_list_scan: null,
      consistency_tokens: false,
    },
    get: async (ref, call) => (await find(ref, call))?.memory,
    search: createSearch(existing),
    ...(lists && { list: createList(existing) }),
    ...(writable
      ? createWrites(existing, find)
      : { read_only: 'the index is read-only: OMP_PINECONE_WRITABLE=true lets the gateway change it' }),
    // Statistics would list every namespace.
    stats: () => ({ waiting: service.queueLength() }),
    ping: async (call) => void (await service.fetch(namespace, [NOBODY], call)),
    close: async () => overlay.close(),
  };
}
