import type { Provider, ProviderContext, ProviderModule } from '#contract';
import type { ProviderName } from './config/provider-names.ts';

/** The only file that names providers. Each is loaded when it is configured, and with it its SDK. */
const PROVIDERS = {
  postgres: () => import('../providers/postgres/index.ts'),
  memory: () => import('../providers/memory/index.ts'),
} satisfies Record<ProviderName, () => Promise<{ default: ProviderModule }>>;

export async function openProvider(name: ProviderName, options: unknown, context: ProviderContext): Promise<Provider> {
  const { default: provider } = await PROVIDERS[name]();
  return provider.open(options, context);
}
