import { OmpError } from '#contract';
import type { Store } from '../core/with-embedder.ts';
import type { StoreMembers } from './at-mount.ts';

/**
 * Stands for an optional store that could not be opened yet. What it can do is not known, so it has every method, and each fails
 * as if the store did not answer.
 */
export function unopenedStore(name: string): Store {
  const fail = async (): Promise<never> => {
    const message = `the store ${name} could not be opened yet; the gateway keeps trying`;
    throw new OmpError('provider_error', message, { provider: name, retryAfter: 1 });
  };
  const members: StoreMembers = {
    name,
    capabilities: {
      vector_search: true,
      keyword_search: false,
      temporal: true,
      temporal_search: true,
      scopes: 'native',
      tags: true,
      max_content_length: null,
      supports_supersession: true,
      max_search_results: null,
      max_list_scan: null,
      consistency_tokens: false,
      etags: true,
      explain: true,
    },
    mounts: undefined,
    embedding: undefined,
    idempotent: true,
    read_only: undefined,
    audit: undefined,
    keys: undefined,
    stats: undefined,
    backlog: undefined,
    queryVector: undefined,
    add: fail,
    batch: fail,
    get: fail,
    update: fail,
    delete: fail,
    list: fail,
    search: fail,
    neighbours: fail,
    users: fail,
    userStats: fail,
    userUsage: fail,
    erase: fail,
    changes: undefined,
    webhooks: undefined,
    embeddingUsage: undefined,
    versions: { list: fail, purge: fail, writtenIn: fail },
    freezing: { current: fail, freeze: fail, unfreeze: fail },
    changesHeld: undefined,
    export: fail,
    import: fail,
    ping: fail,
    close: async () => {},
  };
  return members as Store;
}
