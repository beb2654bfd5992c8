import { isMethod, type Methods, OmpError, type ProviderCapabilities } from '#contract';
import type { Store } from '../core/store.ts';
import { STORE_METHODS } from '../core/translate.ts';
import { NOT_AT_MOUNT } from './at-mount.ts';

/** No request is refused for what the store might be able to do. Every capability is named, so that a new one does not compile until it is decided. */
const ANYTHING: Omit<Required<ProviderCapabilities>, 'stamped'> = {
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
  origins: true,
  mapped: false,
  complete_export: false,
  explain: true,
};

/**
 * Stands for an optional store that could not be opened yet. What it can do is not known, so it has every method, and each fails
 * as if the store did not answer.
 */
export function unopenedStore(name: string): Store {
  const fail = async (): Promise<never> => {
    const message = `the store ${name} could not be opened yet; the gateway keeps trying`;
    throw new OmpError('provider_error', message, { provider: name, retryAfter: 1 });
  };
  const failing = (methods: Methods): object =>
    Object.fromEntries(
      Object.entries(methods).map(([member, entry]) => [member, isMethod(entry) ? fail : failing(entry)]),
    );
  const members = {
    ...failing(STORE_METHODS),
    ...NOT_AT_MOUNT,
    name,
    capabilities: ANYTHING,
    idempotent: true,
    // Nothing embeds for it, and it has no queue.
    queryVector: undefined,
    backlog: undefined,
    close: async () => {},
  };
  return members as Store;
}
