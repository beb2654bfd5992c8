import type { Embedder, MaintenanceContext, Provider } from '#contract';
import type { ProviderName } from '../../src/config/settings.ts';
import { type Memories, type WritableMemories, withEmbedder } from '../../src/core/with-embedder.ts';
import { openProvider } from '../../src/registry.ts';
import { recordingLog } from './subject.ts';

export type { Memories, WritableMemories };
/** With every verb; only where the backend has them. */
export type AllMemories = Required<Memories>;

/** What this provider and this embedder make together; none: keyword search. */
export const memoriesOf = (provider: Provider, embedder?: Embedder): AllMemories =>
  withEmbedder(provider, embedder, recordingLog()) as AllMemories;

/** The same of a provider as the registry opens it. */
export const openMemoriesOf = async (
  name: ProviderName,
  options: unknown,
  context: MaintenanceContext,
): Promise<AllMemories> =>
  withEmbedder(await openProvider(name, options, context), context.embedder, context.log) as AllMemories;
