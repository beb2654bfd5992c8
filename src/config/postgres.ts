import { z } from 'zod';
import { milliseconds, settingFacts, text } from './facts.ts';

const WITH_POSTGRES = ['provider', 'postgres'] as const;

export const postgres = z.strictObject({
  url: z
    .string()
    .regex(/^postgres(ql)?:\/\//)
    .optional()
    .register(settingFacts, {
      env: 'DATABASE_URL',
      description: 'Server with pgvector to use; unset: an embedded Postgres that keeps its files in data_dir',
      allowed: 'a postgres:// or postgresql:// URL',
      secret: true,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
      example: 'postgres://omp:${POSTGRES_PASSWORD}@localhost:5432/omp',
      only: WITH_POSTGRES,
    }),
  schema: text
    // Postgres cuts longer identifiers without an error.
    .refine((name) => Buffer.byteLength(name) <= 63 && !name.includes('\0'))
    .default('omp')
    .register(settingFacts, {
      env: 'OMP_POSTGRES_SCHEMA',
      description: 'Schema that holds the tables; made when missing',
      allowed: '1 to 63 bytes without NUL',
      only: WITH_POSTGRES,
      unless: 'mapping.preset',
    }),
  connections: z.int().min(1).max(100).default(4).register(settingFacts, {
    env: 'OMP_POSTGRES_CONNECTIONS',
    description: 'Most connections to the server; the embedded Postgres always has one',
    only: WITH_POSTGRES,
  }),
  prepared_statements: z.enum(['auto', 'on', 'off']).default('auto').register(settingFacts, {
    env: 'OMP_POSTGRES_PREPARED_STATEMENTS',
    description: 'auto stops using them by itself behind a transaction pooler',
    only: WITH_POSTGRES,
  }),
  connect_timeout_ms: milliseconds.default(5000).register(settingFacts, {
    env: 'OMP_POSTGRES_CONNECT_TIMEOUT_MS',
    description: 'Longest wait for a connection, in milliseconds',
    only: WITH_POSTGRES,
  }),
  acquire_timeout_ms: milliseconds.default(5000).register(settingFacts, {
    env: 'OMP_POSTGRES_ACQUIRE_TIMEOUT_MS',
    description: 'Longest wait of a statement for its turn on a connection, in milliseconds',
    only: WITH_POSTGRES,
  }),
  max_waiting: z.int().min(1).max(1_000_000).default(1000).register(settingFacts, {
    env: 'OMP_POSTGRES_MAX_WAITING',
    description: 'Most statements that wait for a connection in a process; what comes on top is refused at once',
    only: WITH_POSTGRES,
  }),
  query_timeout_ms: milliseconds.default(10_000).register(settingFacts, {
    env: 'OMP_POSTGRES_QUERY_TIMEOUT_MS',
    description: 'Longest time for one statement, which is then cancelled, in milliseconds',
    only: WITH_POSTGRES,
  }),
  large_user_rows: z.int().min(1).max(1_000_000_000).default(10_000).register(settingFacts, {
    env: 'OMP_POSTGRES_LARGE_USER_ROWS',
    description: 'A user with more memories than this is searched by index instead of exactly',
    only: WITH_POSTGRES,
  }),
});
