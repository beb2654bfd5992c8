import type { z } from 'zod';
import type { KeyStore } from './keys.ts';
import type { BackupOutcome, Finding, MaintenanceContext, ReembedOutcome, ReembedRequest } from './maintenance.ts';
import type { Provider, ProviderContext } from './provider.ts';

/** The webhooks of a store, opened alone, with the feed that they are cursors of. */
export interface OpenWebhooks extends Required<Pick<Provider, 'webhooks' | 'changes'>> {
  close(): Promise<void>;
}

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
  /** The same for webhooks. */
  openWebhooks?(options: unknown, context: KeyContext): Promise<OpenWebhooks | undefined>;
  /** Checks everything that the gateway needs to serve, without changes. Returns problems as findings; does not throw them. */
  diagnose?(options: unknown, context: MaintenanceContext): Promise<Finding[]>;
  /** Present when stored memories can be re-embedded. Throws a plain `Error` whose message an operator can act on. */
  reembed?(options: unknown, context: MaintenanceContext, request: ReembedRequest): Promise<ReembedOutcome>;
  /**
   * Present when the store lies in the data folder. Writes all of it to a new file, also while a gateway serves it; `-` is
   * standard output, and standard input for `restore`. Returns the size of the file and for how long the gateway waited. Throws a plain `Error` whose message an operator can act on.
   */
  backup?(options: unknown, context: KeyContext, file: string): Promise<BackupOutcome>;
  /** Present with `backup`. Fills an empty data folder from its file, wholly or not at all. */
  restore?(options: unknown, context: KeyContext, file: string): Promise<true>;
}

export type KeyContext = Pick<ProviderContext, 'data_dir' | 'log'>;

interface ProviderSpec<Schema extends z.ZodType> {
  readonly name: string;
  readonly options: Schema;
  open(options: z.output<Schema>, context: ProviderContext): Promise<Provider>;
  openKeys?(options: z.output<Schema>, context: KeyContext): Promise<KeyStore | undefined>;
  openWebhooks?(options: z.output<Schema>, context: KeyContext): Promise<OpenWebhooks | undefined>;
  diagnose?(options: z.output<Schema>, context: MaintenanceContext): Promise<Finding[]>;
  reembed?(options: z.output<Schema>, context: MaintenanceContext, request: ReembedRequest): Promise<ReembedOutcome>;
  backup?(options: z.output<Schema>, context: KeyContext, file: string): Promise<BackupOutcome>;
  restore?(options: z.output<Schema>, context: KeyContext, file: string): Promise<true>;
}

/** Makes every entry point of a provider parse its options first. */
export const defineProvider = <Schema extends z.ZodType>(spec: ProviderSpec<Schema>): ProviderModule => {
  const { openKeys, openWebhooks, diagnose, reembed, backup, restore } = spec;
  const parse = (options: unknown) => spec.options.parse(options);
  return {
    name: spec.name,
    open: (options, context) => spec.open(parse(options), context),
    ...(openKeys && { openKeys: (options, context) => openKeys(parse(options), context) }),
    ...(openWebhooks && { openWebhooks: (options, context) => openWebhooks(parse(options), context) }),
    ...(diagnose && { diagnose: (options, context) => diagnose(parse(options), context) }),
    ...(reembed && { reembed: (options, context, request) => reembed(parse(options), context, request) }),
    ...(backup && { backup: (options, context, file) => backup(parse(options), context, file) }),
    ...(restore && { restore: (options, context, file) => restore(parse(options), context, file) }),
  };
};
