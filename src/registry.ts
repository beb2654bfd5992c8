import type { Provider, ProviderContext, ProviderModule } from '#contract';
import { isBuiltIn, type ProviderName } from './config/settings.ts';
import { loadProvider } from './load-provider.ts';

/** The only file that names our providers. Each is loaded when it is configured, and with it its SDK. */
const PROVIDERS = {
  postgres: () => import('../providers/postgres/index.ts'),
  pinecone: () => import('../providers/pinecone/index.ts'),
  qdrant: () => import('../providers/collections/qdrant.ts'),
  memory: () => import('../providers/memory/index.ts'),
  chroma: () => import('../providers/collections/chroma.ts'),
  lancedb: () => import('../providers/collections/lancedb.ts'),
  libsql: () => import('../providers/collections/libsql.ts'),
  milvus: () => import('../providers/collections/milvus.ts'),
  weaviate: () => import('../providers/collections/weaviate.ts'),
} satisfies Record<ProviderName, () => Promise<{ default: ProviderModule }>>;

/** The name of a provider in `/capabilities`, errors, metrics and logs. */
export const nameOf = async (provider: string): Promise<string> =>
  isBuiltIn(provider) ? provider : (await providerModule(provider)).name;

/** `provider` as in the configuration. Packages and paths are looked up from the working directory. */
export const providerModule = async (provider: string): Promise<ProviderModule> =>
  isBuiltIn(provider) ? (await PROVIDERS[provider]()).default : loadProvider(provider, process.cwd());

export async function openProvider(provider: string, options: unknown, context: ProviderContext): Promise<Provider> {
  return (await providerModule(provider)).open(options, context);
}
