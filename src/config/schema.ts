import { z } from 'zod';
import { addressOrNetwork, audit, auth, jwt, origin, rateLimit } from './access.ts';
import { milliseconds, settingFacts, text } from './facts.ts';
import { mapping } from './mapping.ts';
import { metrics, resilience, tracing } from './operation.ts';
import { pinecone } from './pinecone.ts';
import { postgres } from './postgres.ts';
import { PROVIDER_NAMES } from './provider-names.ts';

const WITH_VECTORS = ['search.mode', 'hybrid', 'vector'] as const;
const WITH_OPENAI = ['embedding.kind', 'openai'] as const;

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
      description: 'Share of the keyword part in the score, the rest is cosine similarity',
      only: ['search.mode', 'hybrid'],
    }),
});

const embedding = z.strictObject({
  kind: z.enum(['local', 'openai']).default('local').register(settingFacts, {
    env: 'OMP_EMBEDDER',
    description: 'Where vectors are computed: local is bundled and needs no network, openai is any compatible service',
    only: WITH_VECTORS,
  }),
  model: text.default('text-embedding-3-small').register(settingFacts, {
    env: 'OMP_EMBEDDING_MODEL',
    description: 'Name of the embedding model',
    only: WITH_OPENAI,
  }),
  dimensions: z.int().min(1).max(16_000).optional().register(settingFacts, {
    env: 'OMP_EMBEDDING_DIMENSIONS',
    description: 'Vector length to ask of the model; unset: its own',
    example: 1536,
    only: WITH_OPENAI,
  }),
  base_url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .register(settingFacts, {
      env: 'OPENAI_BASE_URL',
      description: 'Address of a compatible service; unset: OpenAI itself',
      allowed: 'an http:// or https:// URL',
      example: 'http://localhost:11434/v1',
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
  timeout_ms: milliseconds.default(10_000).register(settingFacts, {
    env: 'OMP_EMBEDDING_TIMEOUT_MS',
    description: 'Longest wait for the service, in milliseconds',
    only: WITH_OPENAI,
  }),
  batch_size: z.int().min(1).max(2048).default(64).register(settingFacts, {
    env: 'OMP_EMBEDDING_BATCH_SIZE',
    description: 'Most texts in one request to the service',
    only: WITH_OPENAI,
  }),
  max_waiting: z.int().min(1).max(1_000_000).default(1000).register(settingFacts, {
    env: 'OMP_EMBEDDING_MAX_WAITING',
    description: 'Most texts that wait for their vector in a process; what comes on top is refused at once',
    only: WITH_VECTORS,
  }),
  cache_size: z.int().min(0).max(10_000_000).default(10_000).register(settingFacts, {
    env: 'OMP_EMBEDDING_CACHE_SIZE',
    description: 'Query vectors kept in memory; 0 keeps none',
    only: WITH_VECTORS,
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
});

const memory = z.strictObject({
  scopes: z
    .enum(['native', 'none'])
    .default('native')
    .register(settingFacts, {
      env: 'OMP_MEMORY_SCOPES',
      description: "none leaves scopes to the gateway's emulation, to try it out",
      only: ['provider', 'memory'],
    }),
});

/**
 * The one description of the configuration. A setting's key is its path in the YAML file.
 * Which settings exclude each other is said by `only` and `unless` and checked in `load.ts`, together with everything else.
 */
export const configSchema = z.strictObject({
  provider: z.enum(PROVIDER_NAMES).default('postgres').register(settingFacts, {
    env: 'OMP_PROVIDER',
    flag: 'provider',
    description: 'Backend that keeps the memories',
  }),
  host: text.default('127.0.0.1').register(settingFacts, {
    env: 'OMP_HOST',
    flag: 'host',
    description: 'Address to listen on; 0.0.0.0 or :: is every interface',
  }),
  port: z.int().min(0).max(65_535).default(8080).register(settingFacts, {
    env: 'OMP_PORT',
    flag: 'port',
    description: 'Port to listen on; 0 takes a free one',
  }),
  data_dir: text.default('./.omp').register(settingFacts, {
    env: 'OMP_DATA_DIR',
    flag: 'data-dir',
    description: 'Folder for durable files, relative to the working directory',
  }),
  log_level: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .register(settingFacts, { env: 'OMP_LOG_LEVEL', flag: 'log-level', description: 'Least severe lines to log' }),
  max_request_bytes: z
    .int()
    .min(1024)
    .max(100 * 1024 * 1024)
    .default(1024 * 1024)
    .register(settingFacts, { env: 'OMP_MAX_REQUEST_BYTES', description: 'Largest request body, in bytes' }),
  max_header_bytes: z
    .int()
    .min(1024)
    .max(1024 * 1024)
    .default(16 * 1024)
    .register(settingFacts, {
      env: 'OMP_MAX_HEADER_BYTES',
      description: 'Largest request line and headers together, in bytes',
    }),
  header_timeout_ms: milliseconds.default(10_000).register(settingFacts, {
    env: 'OMP_HEADER_TIMEOUT_MS',
    description: 'Longest time for the headers of a request to arrive, in milliseconds',
  }),
  request_timeout_ms: milliseconds.default(30_000).register(settingFacts, {
    env: 'OMP_REQUEST_TIMEOUT_MS',
    description: 'Longest time for one request, in milliseconds',
  }),
  shutdown_timeout_ms: milliseconds.default(10_000).register(settingFacts, {
    env: 'OMP_SHUTDOWN_TIMEOUT_MS',
    description: 'Longest wait for open requests when stopping, in milliseconds',
  }),
  shutdown_delay_ms: z.int().min(0).max(3_600_000).default(0).register(settingFacts, {
    env: 'OMP_SHUTDOWN_DELAY_MS',
    description: 'How long to go on serving when told to stop, as not ready, in milliseconds',
  }),
  max_requests: z.int().min(1).max(1_000_000).default(2000).register(settingFacts, {
    env: 'OMP_MAX_REQUESTS',
    description: 'Most requests a process works on at once; what comes on top is refused at once',
  }),
  max_requests_per_caller: z.int().min(1).max(1_000_000).optional().register(settingFacts, {
    env: 'OMP_MAX_REQUESTS_PER_CALLER',
    description:
      'Most of them for one key, token subject, or without one a client address; unset: half of max_requests',
    example: 500,
  }),
  ingestion: z
    .enum(['sync', 'async'])
    .default('sync')
    .register(settingFacts, {
      env: 'OMP_INGESTION',
      description: 'async answers an add before its vector is computed, which then happens in the background',
      only: ['provider', 'postgres'],
      unless: 'mapping.preset',
    }),
  allowed_hosts: z
    .array(z.string().regex(/^[^\s/@*]+$/))
    .min(1)
    .optional()
    .register(settingFacts, {
      env: 'OMP_ALLOWED_HOSTS',
      description: 'Names clients may reach the gateway by; unset: any, but on loopback without keys only localhost',
      allowed: 'host names or addresses, a port where only that one is meant',
      example: ['memory.example.com'],
    }),
  trusted_proxies: z
    .array(addressOrNetwork)
    .default([])
    .register(settingFacts, {
      env: 'OMP_TRUSTED_PROXIES',
      description: 'Proxies whose X-Forwarded-For tells the address of a client; unset: none',
      allowed: 'IP addresses or networks such as 10.0.0.0/8',
      example: ['10.0.0.0/8', '::1'],
    }),
  cors_origins: z
    .array(origin)
    .default([])
    .register(settingFacts, {
      env: 'OMP_CORS_ORIGINS',
      description: 'Web pages of other origins that may call the gateway; unset: none',
      allowed: 'origins such as https://app.example.com, or * for any',
      example: ['https://app.example.com'],
    }),
  auth: auth.prefault({}),
  jwt: jwt.prefault({}),
  rate_limit: rateLimit.prefault({}),
  audit: audit.prefault({}),
  resilience: resilience.prefault({}),
  metrics: metrics.prefault({}),
  tracing: tracing.prefault({}),
  search: search.prefault({}),
  embedding: embedding.prefault({}),
  postgres: postgres.prefault({}),
  mapping: mapping.prefault({}),
  pinecone: pinecone.prefault({}),
  memory: memory.prefault({}),
});

/** Everything the gateway was told, defaults filled in; `config.postgres.url` is undefined for the embedded server. */
export type Config = z.output<typeof configSchema>;
