/** Every backend that `provider` may name. The registry has one loader for each. */
export const PROVIDER_NAMES = ['postgres', 'pinecone', 'memory'] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];
