import type { Config } from './schema.ts';

/** What the configured provider is opened with. */
export function providerOptions(config: Config): unknown {
  const { provider, mapping, ingestion } = config;
  if (provider !== 'postgres') return config[provider];
  const postgres = { ...config.postgres, ingestion };
  const { preset, ...rest } = mapping;
  return preset === undefined ? postgres : { ...postgres, mapping: { preset, ...rest } };
}
