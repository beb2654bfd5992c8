import type { Holdings } from './erase.ts';
import type { IdempotencyKey } from './idempotency.ts';
import type { KeyStore } from './keys.ts';
import type { BackupOutcome, Finding, MaintenanceContext, ReembedOutcome, ReembedRequest } from './maintenance.ts';
import { FACETS, isMethod, METHODS, type Method, type Methods } from './methods.ts';
import type { Provider, ProviderCapabilities, ProviderContext } from './provider.ts';

/** The webhooks of a store, opened alone, with the feed that they are cursors of. */
export interface OpenWebhooks extends Required<Pick<Provider, 'webhooks' | 'changes'>> {
  close(): Promise<void>;
}

/**
 * The versions of this contract. A provider of another one does not start: see docs/providers.md. Since version 2 a provider is refused
 * that has a part of a facet (`FACETS`), and the kind of an idempotency key is a field of it.
 */
export const PROVIDER_VERSIONS = [1, 2] as const;
type ProviderVersion = (typeof PROVIDER_VERSIONS)[number];

/** The default export of a provider, made by `defineProvider`. */
export interface ProviderModule {
  readonly specVersion: number;
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
  /**
   * Present with `backup`. Fills an empty data folder from its file, wholly or not at all. `without`: users that are erased before anything
   * can serve the folder. Returns what was removed of each; true: it cannot leave users out.
   */
  restore?(
    options: unknown,
    context: RestoreContext,
    file: string,
    without?: readonly string[],
  ): Promise<true | readonly Holdings[]>;
}

export type KeyContext = Pick<ProviderContext, 'data_dir' | 'log'>;
export type RestoreContext = Pick<ProviderContext, 'data_dir' | 'log' | 'audit'>;

/** A schema of any library that follows Standard Schema 1, such as zod, valibot or arktype. */
export interface OptionsSchema<Options = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => OptionsResult<Options> | Promise<OptionsResult<Options>>;
    readonly types?: { readonly input: unknown; readonly output: Options } | undefined;
  };
}

/** `issues`: what is wrong, each with its place in the options. */
export type OptionsResult<Options> =
  | { readonly value: Options; readonly issues?: undefined }
  | { readonly issues: readonly OptionsIssue[] };

export interface OptionsIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A provider as its author writes it: the name is the module's, and capabilities that are left out are absent. */
export interface ProviderMethods extends Omit<Provider, 'name' | 'capabilities'> {
  readonly capabilities?: Partial<ProviderCapabilities>;
}

/** What `defineProvider` takes. The other members are as in `ProviderModule`, with options that the schema has checked. */
export interface ProviderSpec<Options> {
  /** The version of the contract that the provider is written for: a literal. */
  readonly specVersion: ProviderVersion;
  /** Lower-case letters, digits and hyphens. The name in `/capabilities`, errors, metrics and logs. */
  readonly name: string;
  /** Checks the options. Left out: the provider has none. */
  readonly options?: OptionsSchema<Options>;
  open(options: Options, context: ProviderContext): Promise<ProviderMethods>;
  openKeys?(options: Options, context: KeyContext): Promise<KeyStore | undefined>;
  openWebhooks?(options: Options, context: KeyContext): Promise<OpenWebhooks | undefined>;
  diagnose?(options: Options, context: MaintenanceContext): Promise<Finding[]>;
  reembed?(options: Options, context: MaintenanceContext, request: ReembedRequest): Promise<ReembedOutcome>;
  backup?(options: Options, context: KeyContext, file: string): Promise<BackupOutcome>;
  restore?(
    options: Options,
    context: RestoreContext,
    file: string,
    without?: readonly string[],
  ): Promise<true | readonly Holdings[]>;
}

/** What a provider can do beyond its methods, unless it says otherwise. */
const NO_CAPABILITIES: ProviderCapabilities = {
  vector_search: false,
  keyword_search: false,
  temporal: false,
  scopes: 'none',
  tags: false,
  max_content_length: null,
  supports_supersession: false,
  max_search_results: null,
  max_list_scan: null,
  consistency_tokens: false,
  etags: false,
};

/** The members with methods of their own. */
const PARTS = [
  ...Object.keys(METHODS).filter((name) => !isMethod(METHODS[name as keyof typeof METHODS])),
  'ingestion',
] as (PartsOf<typeof METHODS> | 'ingestion')[];
type PartsOf<Table> = { [Member in keyof Table]: Table[Member] extends Method ? never : Member }[keyof Table];

/** Makes every entry point of a provider check its options first. Their errors quote no value: it may be a secret. */
export const defineProvider = <Options>(spec: ProviderSpec<Options>): ProviderModule => {
  const { name, specVersion, openKeys, openWebhooks, diagnose, reembed, backup, restore } = spec;
  const parse = (options: unknown) => checked(spec, options);
  return {
    specVersion,
    name,
    async open(options, context) {
      const members = plain(await spec.open(await parse(options), context));
      const opened = specVersion === 1 ? ofVersion1(members) : members;
      requireMembers(name, opened);
      if (specVersion !== 1) requireWhole(name, opened);
      const parts = PARTS.flatMap((part) => {
        const methods: object | undefined = opened[part];
        return methods ? [[part, plain(methods)]] : [];
      });
      return {
        ...opened,
        ...Object.fromEntries(parts),
        name,
        capabilities: { ...NO_CAPABILITIES, ...opened.capabilities },
      };
    },
    ...(openKeys && { openKeys: async (options, context) => openKeys(await parse(options), context) }),
    ...(openWebhooks && { openWebhooks: async (options, context) => openWebhooks(await parse(options), context) }),
    ...(diagnose && { diagnose: async (options, context) => diagnose(await parse(options), context) }),
    ...(reembed && { reembed: async (options, context, request) => reembed(await parse(options), context, request) }),
    ...(backup && { backup: async (options, context, file) => backup(await parse(options), context, file) }),
    ...(restore && {
      restore: async (options, context, file, without) => restore(await parse(options), context, file, without),
    }),
  };
};

/** What version 1 had otherwise: the name of a capability, and the mark of a batch in an idempotency key, which no key of a client has. */
function ofVersion1({ capabilities, ...methods }: ProviderMethods): ProviderMethods {
  const { batch, keyUse } = methods;
  const { whole_export, ...others } = (capabilities ?? {}) as Version1Capabilities;
  const marked = <Key extends IdempotencyKey>(key: Key): Key =>
    key.kind === 'batch' ? { ...key, key: `batch\n${key.key}` } : key;
  return {
    ...methods,
    capabilities: { ...others, ...(whole_export !== undefined && { complete_export: whole_export }) },
    ...(batch && { batch: ({ key, ...request }, call) => batch({ ...request, key: key && marked(key) }, call) }),
    ...(keyUse && { keyUse: (query, call) => keyUse(marked(query), call) }),
  };
}
type Version1Capabilities = Partial<ProviderCapabilities> & { readonly whole_export?: boolean };

const REQUIRED = ['get', 'ping', 'close'] as const;
/** Capabilities that are younger than version 1 of the contract. */
const OPTIONAL: readonly string[] = [
  'explain',
  'mapped',
  'origins',
  'temporal_search',
  'complete_export',
] satisfies (keyof ProviderCapabilities)[];
const SCOPES: readonly unknown[] = ['native', 'tags', 'none'];

/** Throws if the provider lacks what every provider has, or declares what no provider can: a misspelt name would hide a capability. */
function requireMembers(name: string, provider: ProviderMethods): void {
  const missing = REQUIRED.filter((member) => typeof provider[member] !== 'function');
  if (missing.length > 0)
    throw new Error(`the provider ${name} has no ${missing.join(', ')}, which every provider has`);
  const { capabilities = {} } = provider;
  const unknown = Object.keys(capabilities).filter((key) => !(key in NO_CAPABILITIES) && !OPTIONAL.includes(key));
  if (unknown.length > 0)
    throw new Error(`the provider ${name} declares ${unknown.join(', ')}, which is no capability`);
  const { scopes = 'none' } = capabilities;
  if (!SCOPES.includes(scopes))
    throw new Error(`the provider ${name} declares scopes "${scopes}": one of native, tags, none`);
}

/** Throws, with the name of what is missing, if the provider has a part of a facet. */
function requireWhole(name: string, provider: ProviderMethods): void {
  const has = (of: object | undefined, member: string) => of?.[member as keyof typeof of] !== undefined;
  for (const [member, needs] of Object.entries(FACETS)) {
    if (!has(provider, member)) continue;
    const missing = needs.filter((one) => !has(provider, one));
    if (missing.length > 0)
      throw new Error(`the provider ${name} has ${member} without ${missing.join(', ')}: they come together`);
  }
  for (const [facet, methods] of Object.entries<Method | Methods>(METHODS)) {
    const part = provider[facet as keyof ProviderMethods] as object | undefined;
    if (part === undefined || isMethod(methods)) continue;
    const missing = Object.keys(methods).filter((method) => !has(part, method));
    if (missing.length > 0) throw new Error(`the provider ${name} has ${facet} without its ${missing.join(', ')}`);
  }
}

async function checked<Options>({ name, options: schema }: ProviderSpec<Options>, options: unknown): Promise<Options> {
  const result = await validated(schema, options);
  if (!result.issues) return result.value;
  const mistakes = result.issues.map(({ path = [], message }) => {
    const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
    return `${place === '' ? '' : `${place}: `}${withoutValues(message, options)}`;
  });
  throw new Error(`the provider ${name} rejects its options: ${mistakes.join('; ')}`);
}

async function validated<Options>(
  schema: OptionsSchema<Options> | undefined,
  options: unknown,
): Promise<OptionsResult<Options>> {
  if (schema) return await schema['~standard'].validate(options);
  const [key] = Object.keys(options ?? {});
  // Without a schema `Options` is unknown.
  return key === undefined ? { value: {} as Options } : { issues: [{ message: 'it has no options', path: [key] }] };
}

/** Some libraries quote what they found. */
function withoutValues(message: string, value: unknown): string {
  if (typeof value === 'object' && value !== null) return Object.values(value).reduce(withoutValues, message);
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  return text.length > 2 ? message.replaceAll(text, '…') : message;
}

/** A provider may be an instance of a class. The gateway copies its members, and calls its methods without `this`. */
function plain<Of extends object>(of: Of): Of {
  const copy: Record<string, unknown> = {};
  for (let at: object = of; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      if (name === 'constructor' || name in copy) continue;
      const value: unknown = of[name as keyof Of];
      copy[name] = typeof value === 'function' ? value.bind(of) : value;
    }
  }
  return copy as Of;
}
