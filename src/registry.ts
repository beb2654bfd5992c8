import type { Provider, ProviderContext, ProviderModule } from '#contract';
import type { ProviderName } from './config/settings.ts';

/** The only file that names providers. Each is loaded when it is configured, and with it its SDK. */
const PROVIDERS = {
  postgres: () => import('../providers/postgres/index.ts'),
  pinecone: () => import('../providers/pinecone/index.ts'),
  memory: () => import('../providers/memory/index.ts'),
} satisfies Record<ProviderName, () => Promise<{ default: ProviderModule }>>;

export const providerModule = async (name: ProviderName): Promise<ProviderModule> => (await PROVIDERS[name]()).default;

export async function openProvider(name: ProviderName, options: unknown, context: ProviderContext): Promise<Provider> {
  return (await providerModule(name)).open(options, context);
}
