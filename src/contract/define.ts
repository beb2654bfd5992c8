import type { z } from 'zod';
import type { KeyStore } from './keys.ts';
import type { Provider, ProviderContext } from './provider.ts';

/** What a provider's `index.ts` exports as default. */
export interface ProviderModule {
  readonly name: string;
  /** Checks the options, connects, migrates. Throws a plain `Error` whose message an operator can act on. */
  open(options: unknown, context: ProviderContext): Promise<Provider>;
  /** Present when this provider keeps API keys: opens just them, for the command line. */
  openKeys?(options: unknown, context: KeyContext): Promise<KeyStore>;
}

export type KeyContext = Pick<ProviderContext, 'data_dir' | 'log'>;

/** Ties a provider's options schema to its `open`: parsing sits inside, so nobody can skip it. */
export const defineProvider = <Schema extends z.ZodType>(spec: {
  readonly name: string;
  readonly options: Schema;
  open(options: z.output<Schema>, context: ProviderContext): Promise<Provider>;
  openKeys?(options: z.output<Schema>, context: KeyContext): Promise<KeyStore>;
}): ProviderModule => {
  const { openKeys } = spec;
  return {
    name: spec.name,
    open: (options, context) => spec.open(spec.options.parse(options), context),
    ...(openKeys && { openKeys: (options, context) => openKeys(spec.options.parse(options), context) }),
  };
};
