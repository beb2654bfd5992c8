import type {
  BackupOutcome,
  Finding,
  KeyContext,
  KeyStore,
  MaintenanceContext,
  OpenWebhooks,
  Provider,
  ProviderContext,
  ProviderModule,
  ReembedOutcome,
  ReembedRequest,
} from '#contract';
import type { ProviderName } from './config/settings.ts';

/** The only file that names providers. Each is loaded when it is configured, and with it its SDK. */
const PROVIDERS = {
  postgres: () => import('../providers/postgres/index.ts'),
  pinecone: () => import('../providers/pinecone/index.ts'),
  memory: () => import('../providers/memory/index.ts'),
} satisfies Record<ProviderName, () => Promise<{ default: ProviderModule }>>;

export async function openProvider(name: ProviderName, options: unknown, context: ProviderContext): Promise<Provider> {
  return (await moduleOf(name)).open(options, context);
}

/** Opens the key store of a provider alone; undefined: it stores no keys. */
export async function openKeys(
  name: ProviderName,
  options: unknown,
  context: KeyContext,
): Promise<KeyStore | undefined> {
  return (await moduleOf(name)).openKeys?.(options, context);
}

/** Opens the webhooks of a provider alone, with its feed of changes; undefined: it stores none. */
export async function openWebhooks(
  name: ProviderName,
  options: unknown,
  context: KeyContext,
): Promise<OpenWebhooks | undefined> {
  return (await moduleOf(name)).openWebhooks?.(options, context);
}

/** The findings of `omp-gateway doctor` about a provider; undefined: it has no checks except opening it. */
export async function diagnose(
  name: ProviderName,
  options: unknown,
  context: MaintenanceContext,
): Promise<Finding[] | undefined> {
  return (await moduleOf(name)).diagnose?.(options, context);
}

/** Re-embeds the stored memories; undefined: the provider does not support that. */
export async function reembed(
  name: ProviderName,
  { options, context, request }: { options: unknown; context: MaintenanceContext; request: ReembedRequest },
): Promise<ReembedOutcome | undefined> {
  return (await moduleOf(name)).reembed?.(options, context, request);
}

/** Writes the store in the data folder to a new file; undefined: the provider has none there. */
export async function backup(
  name: ProviderName,
  options: unknown,
  context: KeyContext,
  file: string,
): Promise<BackupOutcome | undefined> {
  return (await moduleOf(name)).backup?.(options, context, file);
}

/** Fills an empty data folder from that file; undefined: the provider has no store there. */
export async function restore(
  name: ProviderName,
  options: unknown,
  context: KeyContext,
  file: string,
): Promise<true | undefined> {
  return (await moduleOf(name)).restore?.(options, context, file);
}

const moduleOf = async (name: ProviderName): Promise<ProviderModule> => (await PROVIDERS[name]()).default;
