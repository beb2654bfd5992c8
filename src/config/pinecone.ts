import { z } from 'zod';
import { settingFacts, text } from './facts.ts';

const WITH_PINECONE = ['provider', 'pinecone'] as const;
const PRESET = 'pinecone.preset';
/** An index that the gateway fills itself, or one that somebody else does. */
const OWN = { only: WITH_PINECONE, unless: PRESET };
const EXISTING = { only: [PRESET] } as const;

/** Pinecone's own commands begin with `$` and may not be keys. */
const field = text.regex(/^[^$]/);
const fieldFacts = { allowed: 'the name of a metadata field', ...EXISTING };
const waiting = z.int().min(0).max(3_600_000);

export const pinecone = z.strictObject({
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/)
    .optional()
    .register(settingFacts, {
      env: 'PINECONE_API_KEY',
      description: 'Key of the project that the index belongs to; required with this provider',
      allowed: 'printable ASCII characters without spaces',
      secret: true,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
      example: '${PINECONE_API_KEY}',
      only: WITH_PINECONE,
    }),
  index_host: z
    .string()
    .regex(/^(https?:\/\/)?([^\s/?#@:[\]]+|\[[\da-f:.]+\])(:\d+)?\/*$/i)
    .optional()
    .register(settingFacts, {
      env: 'PINECONE_INDEX_HOST',
      description: 'Address of the index, as the console of Pinecone shows it; required with this provider',
      allowed: 'a host name, with http:// before it only where the service is not reached by https://',
      example: 'memories-abc1234.svc.aped-4627-b74a.pinecone.io',
      only: WITH_PINECONE,
    }),
  namespace: z
    .string()
    .regex(/^[\x21-\x7e]{1,400}$/)
    .default('memories')
    .register(settingFacts, {
      env: 'OMP_PINECONE_NAMESPACE',
      description: 'Namespace of the memories, and what those of the other layouts begin with',
      allowed: '1 to 400 printable ASCII characters without spaces',
      only: WITH_PINECONE,
    }),
  layout: z
    .enum(['single', 'sharded', 'per-user'])
    .default('single')
    .register(settingFacts, {
      env: 'OMP_PINECONE_LAYOUT',
      description: 'Memories of all users in one namespace, spread over 32, or each user in a namespace of their own',
      ...OWN,
    }),
  metric: z.enum(['cosine', 'dotproduct', 'euclidean']).default('cosine').register(settingFacts, {
    env: 'OMP_PINECONE_METRIC',
    description: 'Metric of the index, where the service does not tell',
    only: WITH_PINECONE,
  }),
  timeout_ms: z.int().min(1).max(3_600_000).default(5_000).register(settingFacts, {
    env: 'OMP_PINECONE_TIMEOUT_MS',
    description: 'Longest wait for one answer, in milliseconds; what is repeated waits anew',
    only: WITH_PINECONE,
  }),
  concurrency: z.int().min(1).max(1000).default(32).register(settingFacts, {
    env: 'OMP_PINECONE_CONCURRENCY',
    description: 'Most requests to the service at once, of a process',
    only: WITH_PINECONE,
  }),
  max_waiting: z.int().min(1).max(1_000_000).default(1000).register(settingFacts, {
    env: 'OMP_PINECONE_MAX_WAITING',
    description: 'Most requests that wait for their turn in a process; what comes on top is refused at once',
    only: WITH_PINECONE,
  }),
  settle_ms: waiting.default(120_000).register(settingFacts, {
    env: 'OMP_PINECONE_SETTLE_MS',
    description: 'How long own writes are remembered, so that reads show them before the service does, in milliseconds',
    only: WITH_PINECONE,
  }),
  consistency_wait_ms: waiting.default(1_000).register(settingFacts, {
    env: 'OMP_PINECONE_CONSISTENCY_WAIT_MS',
    description: 'Longest wait for what a client wrote through another gateway, in milliseconds',
    ...OWN,
  }),
  max_scan: z
    .int()
    .min(1)
    .max(10_000_000)
    .default(10_000)
    .register(settingFacts, {
      env: 'OMP_PINECONE_MAX_SCAN',
      description: 'Most memories read to fill one page of a filtered list; one that takes more is refused',
      ...OWN,
    }),
  preset: z
    .enum(['langchain', 'llamaindex', 'mem0', 'mem0-ts', 'haystack', 'spring-ai', 'integrated', 'custom'])
    .optional()
    .register(settingFacts, {
      env: 'OMP_PINECONE_PRESET',
      description:
        'What fills the index, if not this gateway: its fields, or with custom those that are named here; unset: this gateway',
      example: 'langchain',
      only: WITH_PINECONE,
    }),
  text_field: field.optional().register(settingFacts, {
    env: 'OMP_PINECONE_TEXT_FIELD',
    description: 'Field that holds the text; unset: that of the preset',
    example: 'text',
    ...fieldFacts,
  }),
  user_field: field.optional().register(settingFacts, {
    env: 'OMP_PINECONE_USER_FIELD',
    description: 'Field that holds the id of the user; unset: that of the preset',
    example: 'user_id',
    ...fieldFacts,
  }),
  created_field: field.optional().register(settingFacts, {
    env: 'OMP_PINECONE_CREATED_FIELD',
    description: 'Field that holds the time of creation; unset: that of the preset',
    example: 'created_at',
    ...fieldFacts,
  }),
  updated_field: field.optional().register(settingFacts, {
    env: 'OMP_PINECONE_UPDATED_FIELD',
    description: 'Field that holds the time of the last change; unset: that of the preset',
    example: 'updated_at',
    ...fieldFacts,
  }),
  tags_field: field.optional().register(settingFacts, {
    env: 'OMP_PINECONE_TAGS_FIELD',
    description: 'Field that holds tags, a list of texts; unset: there are no tags',
    example: 'tags',
    ...fieldFacts,
  }),
  writable: z
    .boolean()
    .default(false)
    .register(settingFacts, {
      env: 'OMP_PINECONE_WRITABLE',
      description: 'Whether memories can be added, changed and deleted through this gateway',
      ...EXISTING,
    }),
  max_listed: z
    .int()
    .min(1)
    .max(10_000)
    .default(1_000)
    .register(settingFacts, {
      env: 'OMP_PINECONE_MAX_LISTED',
      description: 'Most memories of one user that a list reads and sorts; lists of a user with more are refused',
      ...EXISTING,
    }),
});
