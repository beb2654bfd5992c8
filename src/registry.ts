import type { KeyContext, KeyStore, Provider, ProviderContext, ProviderModule } from '#contract';
import type { ProviderName } from './config/provider-names.ts';

/** The only file that names providers. Each is loaded when it is configured, and with it its SDK. */
const PROVIDERS = {
  postgres: () => import('../providers/postgres/index.ts'),
  pinecone: () => import('../providers/pinecone/index.ts'),
  memory: () => import('../providers/memory/index.ts'),
} satisfies Record<ProviderName, () => Promise<{ default: ProviderModule }>>;

export async function openProvider(name: ProviderName, options: unknown, context: ProviderContext): Promise<Provider> {
  const { default: provider } = await PROVIDERS[name]();
  return provider.open(options, context);
}

/** The API keys that a provider keeps, without the rest of it; undefined when it keeps none. */
export async function openKeys(
  name: ProviderName,
  options: unknown,
  context: KeyContext,
): Promise<KeyStore | undefined> {
  const { default: provider }: { default: ProviderModule } = await PROVIDERS[name]();
  return provider.openKeys?.(options, context);
}
