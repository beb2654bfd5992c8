import type { Config } from './schema.ts';

/** What the configured provider is opened with. */
export function providerOptions(config: Config): unknown {
  const { provider, postgres, mapping } = config;
  if (provider !== 'postgres') return config[provider];
  const { preset, ...rest } = mapping;
  return preset === undefined ? postgres : { ...postgres, mapping: { preset, ...rest } };
}
