import type {
  BackupOutcome,
  Finding,
  KeyContext,
  KeyStore,
  MaintenanceContext,
  Provider,
  ProviderContext,
  ProviderModule,
  ReembedOutcome,
  ReembedRequest,
} from '#contract';
import { isBuiltIn, type ProviderName } from './config/settings.ts';
import { loadProvider } from './load-provider.ts';

/** The only file that names our providers. Each is loaded when it is configured, and with it its SDK. */
const PROVIDERS = {
  postgres: () => import('../providers/postgres/index.ts'),
  pinecone: () => import('../providers/pinecone/index.ts'),
  memory: () => import('../providers/memory/index.ts'),
} satisfies Record<ProviderName, () => Promise<{ default: ProviderModule }>>;

export async function openProvider(provider: string, options: unknown, context: ProviderContext): Promise<Provider> {
  return (await moduleOf(provider)).open(options, context);
}

/** Opens the key store of a provider alone; undefined: it stores no keys. */
export async function openKeys(provider: string, options: unknown, context: KeyContext): Promise<KeyStore | undefined> {
  return (await moduleOf(provider)).openKeys?.(options, context);
}

/** The findings of `omp-gateway doctor` about a provider; undefined: it has no checks except opening it. */
export async function diagnose(
  provider: string,
  options: unknown,
  context: MaintenanceContext,
): Promise<Finding[] | undefined> {
  return (await moduleOf(provider)).diagnose?.(options, context);
}

/** Re-embeds the stored memories; undefined: the provider does not support that. */
export async function reembed(
  provider: string,
  { options, context, request }: { options: unknown; context: MaintenanceContext; request: ReembedRequest },
): Promise<ReembedOutcome | undefined> {
  return (await moduleOf(provider)).reembed?.(options, context, request);
}

/** Writes the store in the data folder to a new file; undefined: the provider has none there. */
export async function backup(
  provider: string,
  options: unknown,
  context: KeyContext,
  file: string,
): Promise<BackupOutcome | undefined> {
  return (await moduleOf(provider)).backup?.(options, context, file);
}

/** Fills an empty data folder from that file; undefined: the provider has no store there. */
export async function restore(
  provider: string,
  options: unknown,
  context: KeyContext,
  file: string,
): Promise<true | undefined> {
  return (await moduleOf(provider)).restore?.(options, context, file);
}

/** The name of a provider in `/capabilities`, errors, metrics and logs. */
export const nameOf = async (provider: string): Promise<string> =>
  isBuiltIn(provider) ? provider : (await moduleOf(provider)).name;

/** `provider` as in the configuration. Packages and paths are looked up from the working directory. */
const moduleOf = async (provider: string): Promise<ProviderModule> =>
  isBuiltIn(provider) ? (await PROVIDERS[provider]()).default : loadProvider(provider, process.cwd());
