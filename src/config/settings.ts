import { z } from 'zod';
import { Options as MemoryOptions } from '../../providers/memory/memory-options.ts';
import { FEATURE_SETTINGS } from '../features/settings.ts';
import { scope } from '../verbs/fields.ts';
import { access, limits } from './access-settings.ts';
import { COLLECTION_NAMES, collections } from './collection-settings.ts';
import { httpUrl, milliseconds, settingFacts, text } from './facts.ts';
import { mapping } from './mapping-settings.ts';
import { nearest } from './mistakes.ts';
import { pinecone } from './pinecone-settings.ts';
import { ingestion, postgres } from './postgres-settings.ts';

/** Our own providers. The registry has one loader for each. */
export const PROVIDER_NAMES = ['postgres', 'pinecone', 'memory', ...COLLECTION_NAMES] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];
export const isBuiltIn = (provider: string): provider is ProviderName =>
  PROVIDER_NAMES.some((name) => name === provider);

/** The name of a package in lower case, with or without its scope, or a path that begins like one. */
const PROVIDER = /^(?:(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*|\.{0,2}\/.+)$/;
/** A package could have such a name; it can still be given as a path. */
const isMisspelt = (provider: string): boolean =>
  nearest(
    provider,
    PROVIDER_NAMES.map((name) => [name, name]),
  )?.edits === 1;

const server = {
  host: text.default('127.0.0.1').register(settingFacts, {
    env: 'OMP_HOST',
    flag: 'host',
    description: 'Address to listen on; 0.0.0.0 or :: is every interface',
  }),
  port: z.int().min(0).max(65_535).default(8080).register(settingFacts, {
    env: 'OMP_PORT',
    flag: 'port',
    description: 'Port to listen on; 0: a free port',
  }),
  log_level: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .register(settingFacts, { env: 'OMP_LOG_LEVEL', flag: 'log-level', description: 'Lowest severity to log' }),
  request_timeout_ms: milliseconds.default(30_000).register(settingFacts, {
    env: 'OMP_REQUEST_TIMEOUT_MS',
    description: 'Deadline of one request, in milliseconds',
  }),
  shutdown_delay_ms: z.int().min(0).max(3_600_000).default(0).register(settingFacts, {
    env: 'OMP_SHUTDOWN_DELAY_MS',
    description: 'How long to keep serving after SIGTERM while /readyz reports not ready, in milliseconds',
  }),
  shutdown_timeout_ms: milliseconds.default(10_000).register(settingFacts, {
    env: 'OMP_SHUTDOWN_TIMEOUT_MS',
    description: 'Deadline of open requests at shutdown, in milliseconds',
  }),
};

const store = {
  provider: z
    .string()
    .max(1_000)
    .regex(PROVIDER)
    .refine((provider) => !isMisspelt(provider))
    .default('postgres')
    .register(settingFacts, {
      env: 'OMP_PROVIDER',
      flag: 'provider',
      description: 'Backend that stores the memories; packages and paths are looked up from the working directory',
      allowed: `one of ${PROVIDER_NAMES.join(', ')}, the name of an installed package, or a path such as ./provider.js`,
    }),
  options: z
    .record(z.string(), z.unknown())
    .optional()
    .register(settingFacts, {
      env: 'OMP_PROVIDER_OPTIONS',
      description: 'Options of a provider that is a package or a path, which checks them',
      allowed: 'an object, in the environment as JSON',
      secret: true,
      example: { url: 'http://localhost:8000' },
      except: ['provider', ...PROVIDER_NAMES],
    }),
  data_dir: text.default('./.omp').register(settingFacts, {
    env: 'OMP_DATA_DIR',
    flag: 'data-dir',
    description: 'Folder of the embedded Postgres, relative to the working directory',
  }),
};

/** Not checked here: `mounted-stores.ts` reads each store. */
const stores = z
  .record(z.string(), z.unknown())
  .optional()
  .register(settingFacts, {
    env: 'OMP_STORES',
    nested: true,
    description:
      'Further stores by name, each mounted at a scope (mount) and with settings of its own; in the environment as JSON or YAML',
    allowed: 'stores by name, each with a mount and the settings of a store',
    secret: true,
    example: {
      crm: {
        mount: 'crm',
        required: false,
        provider: 'pinecone',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
        pinecone: { api_key: '${PINECONE_API_KEY}', index_host: 'crm-abc1234.svc.aped-4627-b74a.pinecone.io' },
      },
    },
  });

/** Of a mounted store alone. */
export const mounted = {
  mount: scope
    .refine((path) => !path.split('/').some((segment) => segment === '.' || segment === '..'))
    .optional()
    .register(settingFacts, {
      env: 'OMP_STORES',
      description: 'Scope at which the store appears; required',
      allowed: 'a scope: 1 to 32 segments joined by "/", none of them "." or "..", without *, ? and control characters',
    }),
  required: z.boolean().default(true).register(settingFacts, {
    env: 'OMP_STORES',
    description:
      'Whether a request that needs the store fails when the store does; false: the store is left out, and the answer names it',
  }),
  weight: z.number().min(0.01).max(100).default(1).register(settingFacts, {
    env: 'OMP_STORES',
    description: "Factor of the store's scores where hits of several stores are merged",
  }),
};

const search = z.strictObject({
  mode: z
    .enum(['hybrid', 'vector', 'keyword'])
    .default('hybrid')
    .register(settingFacts, { env: 'OMP_SEARCH_MODE', description: 'How search ranks' }),
  keyword_weight: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .register(settingFacts, {
      env: 'OMP_KEYWORD_WEIGHT',
      description: 'Weight of the keyword part in the score; the rest is cosine similarity',
      only: ['search.mode', 'hybrid'],
    }),
});

const WITH_OPENAI = ['embedding.kind', 'openai'] as const;

const embedding = z.strictObject({
  kind: z
    .enum(['local', 'openai'])
    .default('local')
    .register(settingFacts, {
      env: 'OMP_EMBEDDER',
      description: 'Where vectors are computed; local: bundled, needs no network; openai: any compatible service',
      only: ['search.mode', 'hybrid', 'vector'],
    }),
  workers: z
    .int()
    .min(1)
    .max(16)
    .default(1)
    .register(settingFacts, {
      env: 'OMP_EMBEDDING_WORKERS',
      description: 'Threads that compute vectors',
      only: ['embedding.kind', 'local'],
    }),
  model: text.default('text-embedding-3-small').register(settingFacts, {
    env: 'OMP_EMBEDDING_MODEL',
    description: 'Name of the embedding model',
    only: WITH_OPENAI,
  }),
  dimensions: z.int().min(1).max(16_000).optional().register(settingFacts, {
    env: 'OMP_EMBEDDING_DIMENSIONS',
    description: "Vector length to request; unset: the model's own",
    example: 1536,
    only: WITH_OPENAI,
  }),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/)
    .optional()
    .register(settingFacts, {
      env: 'OPENAI_API_KEY',
      description: 'Key of the service; required unless embedding.base_url is set',
      allowed: 'printable ASCII characters without spaces',
      secret: true,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
      example: '${OPENAI_API_KEY}',
      only: WITH_OPENAI,
    }),
  base_url: httpUrl.optional().register(settingFacts, {
    env: 'OPENAI_BASE_URL',
    description: 'Address of a compatible service; unset: OpenAI',
    allowed: 'an http:// or https:// URL',
    example: 'http://localhost:11434/v1',
    only: WITH_OPENAI,
  }),
  timeout_ms: milliseconds.default(10_000).register(settingFacts, {
    env: 'OMP_EMBEDDING_TIMEOUT_MS',
    description: 'Deadline of one request to the service, in milliseconds',
    only: WITH_OPENAI,
  }),
  batch_size: z.int().min(1).max(2048).default(64).register(settingFacts, {
    env: 'OMP_EMBEDDING_BATCH_SIZE',
    description: 'Maximum texts in one request to the service',
    only: WITH_OPENAI,
  }),
});

const memory = z.strictObject({
  scopes: MemoryOptions.shape.scopes.register(settingFacts, {
    env: 'OMP_MEMORY_SCOPES',
    description: "none: use the gateway's emulation of scopes, to try it out",
    only: ['provider', 'memory'],
  }),
});

const metrics = z.strictObject({
  port: z.int().min(0).max(65_535).optional().register(settingFacts, {
    env: 'OMP_METRICS_PORT',
    description: 'Port for /metrics, /livez and /readyz, which need no key; unset: no metrics',
    example: 9464,
  }),
  host: text.default('127.0.0.1').register(settingFacts, {
    env: 'OMP_METRICS_HOST',
    description: 'Address to listen on for metrics; 0.0.0.0 or :: is every interface',
    only: ['metrics.port'],
  }),
});

const WITH_TRACING = ['tracing.url'] as const;

/** The names are those of OpenTelemetry where it has one. */
const tracing = z.strictObject({
  url: httpUrl.optional().register(settingFacts, {
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description: 'Collector that receives traces as OTLP over HTTP; unset: no traces',
    allowed: 'an http:// or https:// URL',
    example: 'http://localhost:4318',
  }),
  service_name: text.default('omp-gateway').register(settingFacts, {
    env: 'OTEL_SERVICE_NAME',
    description: 'Service name in traces',
    only: WITH_TRACING,
  }),
  ratio: z.number().min(0).max(1).default(1).register(settingFacts, {
    env: 'OMP_TRACING_RATIO',
    description: 'Share of the requests to trace, unless the caller decides',
    only: WITH_TRACING,
  }),
});

/** All settings by group, in the order of help, the tables and the example file. */
export const GROUPS = {
  Server: { ...server, ...FEATURE_SETTINGS.Server },
  Stores: { ...store, ...FEATURE_SETTINGS.Stores, stores },
  Access: access,
  Limits: { ...limits, ...FEATURE_SETTINGS.Limits },
  'Search and embedding': { search: search.prefault({}), embedding: embedding.prefault({}), ingestion },
  Postgres: { postgres: postgres.prefault({}) },
  'Mapped tables': { mapping: mapping.prefault({}) },
  Pinecone: { pinecone: pinecone.prefault({}) },
  'Vector databases': collections,
  'In-memory provider': { memory: memory.prefault({}) },
  'Metrics and traces': { metrics: metrics.prefault({}), tracing: tracing.prefault({}) },
};
export type Group = keyof typeof GROUPS;

/**
 * The configuration. A setting's key is its path in the YAML file. `only` and `unless` say which settings exclude each
 * other; `load.ts` checks them together with everything else.
 */
export const configSchema = z.strictObject({
  ...GROUPS.Server,
  ...GROUPS.Stores,
  ...GROUPS.Access,
  ...GROUPS.Limits,
  ...GROUPS['Search and embedding'],
  ...GROUPS.Postgres,
  ...GROUPS['Mapped tables'],
  ...GROUPS.Pinecone,
  ...GROUPS['Vector databases'],
  ...GROUPS['In-memory provider'],
  ...GROUPS['Metrics and traces'],
});

/** What the gateway has once, however many stores there are. */
const ofGateway = {
  ...GROUPS.Server,
  ...GROUPS.Access,
  ...GROUPS.Limits,
  ...GROUPS['Metrics and traces'],
  ...FEATURE_SETTINGS.ofGateway,
  stores,
};
const mask = Object.fromEntries(Object.keys(ofGateway).map((key) => [key, true]));

/** A mounted store: its mount, and every setting that is not the gateway's. */
export const storeSchema = configSchema.omit(mask as { [Key in keyof typeof ofGateway]: true }).extend(mounted);

/** The loaded configuration with defaults; `postgres.url` is undefined for the embedded server. */
export type Config = Omit<z.output<typeof configSchema>, 'stores'> & { readonly stores: readonly StoreConfig[] };

/** A store that is mounted beside the root store, which the rest of the configuration describes. */
export interface StoreConfig {
  /** `[a-z][a-z0-9-]{0,31}`, and not the name of the root store's provider. */
  readonly name: string;
  /** The scope under which its memories appear. No mount lies inside another. */
  readonly mount: string;
  readonly required: boolean;
  /** From 0.01 to 100. */
  readonly weight: number;
  /** The configuration of this store alone, without stores. */
  readonly config: Config;
}
