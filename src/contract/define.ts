import type { z } from 'zod';
import type { KeyStore } from './keys.ts';
import type { Finding, MaintenanceContext, ReembedOutcome, ReembedRequest } from './maintenance.ts';
import type { Provider, ProviderContext } from './provider.ts';

/** The default export of a provider's `index.ts`. */
export interface ProviderModule {
  readonly name: string;
  /** Checks the options, connects, migrates. Throws a plain `Error` whose message an operator can act on. */
  open(options: unknown, context: ProviderContext): Promise<Provider>;
  /**
   * Present when this provider stores API keys. Opens the key store alone, for the command line. Undefined: these
   * options have none.
   */
  openKeys?(options: unknown, context: KeyContext): Promise<KeyStore | undefined>;
  /** Checks everything that the gateway needs to serve, without changes. Returns problems as findings; does not throw them. */
  diagnose?(options: unknown, context: MaintenanceContext): Promise<Finding[]>;
  /** Present when stored memories can be re-embedded. Throws a plain `Error` whose message an operator can act on. */
  reembed?(options: unknown, context: MaintenanceContext, request: ReembedRequest): Promise<ReembedOutcome>;
}

export type KeyContext = Pick<ProviderContext, 'data_dir' | 'log'>;

interface ProviderSpec<Schema extends z.ZodType> {
  readonly name: string;
  readonly options: Schema;
  open(options: z.output<Schema>, context: ProviderContext): Promise<Provider>;
  openKeys?(options: z.output<Schema>, context: KeyContext): Promise<KeyStore | undefined>;
  diagnose?(options: z.output<Schema>, context: MaintenanceContext): Promise<Finding[]>;
  reembed?(options: z.output<Schema>, context: MaintenanceContext, request: ReembedRequest): Promise<ReembedOutcome>;
}

/** Makes every entry point of a provider parse its options first. */
export const defineProvider = <Schema extends z.ZodType>(spec: ProviderSpec<Schema>): ProviderModule => {
  const { openKeys, diagnose, reembed } = spec;
  const parse = (options: unknown) => spec.options.parse(options);
  return {
    name: spec.name,
    open: (options, context) => spec.open(parse(options), context),
    ...(openKeys && { openKeys: (options, context) => openKeys(parse(options), context) }),
    ...(diagnose && { diagnose: (options, context) => diagnose(parse(options), context) }),
    ...(reembed && { reembed: (options, context, request) => reembed(parse(options), context, request) }),
  };
};
