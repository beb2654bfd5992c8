import { z } from 'zod';
import { Options } from '../../providers/postgres/postgres-options.ts';
import { settingFacts } from './facts.ts';

/** The provider's schema decides what is allowed. This file says what a user needs to know about each setting. */
const { shape } = Options;

const SERVER_URL = 'a postgres:// or postgresql:// URL with / ? # and @ of its password percent-encoded';
const only = ['provider', 'postgres'] as const;

export const postgres = z.strictObject({
  url: shape.url.register(settingFacts, {
    env: 'DATABASE_URL',
    description: 'PostgreSQL server with pgvector; unset: an embedded Postgres that keeps its files in data_dir',
    allowed: SERVER_URL,
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: 'postgres://omp:${POSTGRES_PASSWORD}@localhost:5432/omp',
    only,
  }),
  read_url: shape.read_url.register(settingFacts, {
    env: 'OMP_POSTGRES_READ_URL',
    description:
      'One streaming replica of the server, which answers searches, lists and contexts while it is up to date',
    allowed: SERVER_URL,
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: 'postgres://omp:${POSTGRES_PASSWORD}@replica:5432/omp',
    only,
    unless: 'mapping.preset',
  }),
  schema: shape.schema.register(settingFacts, {
    env: 'OMP_POSTGRES_SCHEMA',
    description: "Schema of the gateway's tables; created if missing",
    allowed: '1 to 63 bytes without NUL',
    only,
    unless: 'mapping.preset',
  }),
  distributed: shape.distributed.register(settingFacts, {
    env: 'OMP_POSTGRES_DISTRIBUTED',
    description:
      'citus: distributes the tables over the nodes of Citus at the next start; the server must be its coordinator',
    only,
    unless: 'mapping.preset',
  }),
  connections: shape.connections.register(settingFacts, {
    env: 'OMP_POSTGRES_CONNECTIONS',
    description: 'Maximum connections to the server; the embedded Postgres always has one',
    only,
  }),
  prepared_statements: shape.prepared_statements.register(settingFacts, {
    env: 'OMP_POSTGRES_PREPARED_STATEMENTS',
    description: 'auto: stops using prepared statements if a transaction pooler does not support them',
    only,
  }),
  connect_timeout_ms: shape.connect_timeout_ms.register(settingFacts, {
    env: 'OMP_POSTGRES_CONNECT_TIMEOUT_MS',
    description: 'Deadline for opening a connection, and for a statement to get one, in milliseconds',
    only,
  }),
  query_timeout_ms: shape.query_timeout_ms.register(settingFacts, {
    env: 'OMP_POSTGRES_QUERY_TIMEOUT_MS',
    description: 'Deadline of one statement, which is then cancelled, in milliseconds',
    only,
  }),
  purge_expired_days: shape.purge_expired_days.register(settingFacts, {
    env: 'OMP_PURGE_EXPIRED_DAYS',
    description: 'Days after its valid_to until a memory is deleted; unset: never',
    example: 30,
    only,
    unless: 'mapping.preset',
  }),
});

export const ingestion = shape.ingestion.register(settingFacts, {
  env: 'OMP_INGESTION',
  description: 'async: an add is answered before its vector is computed, which then happens in the background',
  only,
  unless: 'mapping.preset',
});
