import type { Embedder, MaintenanceContext, Provider } from '#contract';
import type { ProviderName } from '../../src/config/settings.ts';
import type { Store, WritableStore } from '../../src/core/store.ts';
import { withEmbedder } from '../../src/core/with-embedder.ts';
import { openProvider } from '../../src/registry.ts';
import { recordingLog } from './subject.ts';

export type { Store, WritableStore };
/** With every verb; only where the backend has them. */
export type FullStore = Required<Store>;

/** What this provider and this embedder make together; none: keyword search. */
export const storeOf = (provider: Provider, embedder?: Embedder): FullStore =>
  withEmbedder(provider, embedder, recordingLog()) as FullStore;

/** The same of a provider as the registry opens it. */
export const openStoreOf = async (
  name: ProviderName,
  options: unknown,
  context: MaintenanceContext,
): Promise<FullStore> =>
  withEmbedder(await openProvider(name, options, context), context.embedder, context.log) as FullStore;
