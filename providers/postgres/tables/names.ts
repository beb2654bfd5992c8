import pg from 'pg';
import { bucketOf, type Placement, placementOf, unplaced } from '../scaling/placement.ts';

/** Quoted names of everything that the statements use. */
export interface Names {
  /** The schema itself. */
  readonly schema: string;
  readonly memories: string;
  /** The column of the vectors in use. */
  readonly embedding: string;
  readonly largeUsers: string;
  readonly versions: string;
  readonly ingestion: string;
  readonly store: string;
  readonly auditLog: string;
  readonly logStarts: string;
  readonly onceKeys: string;
  readonly userUsage: string;
  readonly apiKeys: string;
  readonly rateLimits: string;
  readonly webhooks: string;
  readonly embeddingUsage: string;
  readonly migrations: string;
  /** pgvector's type and operators, qualified: the extension may be in any schema. */
  readonly halfvec: string;
  readonly halfvecCosine: string;
  readonly cosineDistance: string;
  readonly placement: Placement;
  /** Of the store: without it, nobody can tell a bucket or a hash of a text from another one. */
  readonly secret: Uint8Array;
}

export function toNames(schemaName: string, extensionSchema: string): Names {
  const schema = pg.escapeIdentifier(schemaName);
  const extension = pg.escapeIdentifier(extensionSchema);
  const memories = `${schema}.memories`;
  return {
    schema,
    memories,
    embedding: pg.escapeIdentifier('embedding'),
    largeUsers: `${schema}.large_users`,
    versions: `${schema}.memory_versions`,
    ingestion: `${schema}.ingestion`,
    store: `${schema}.store`,
    auditLog: `${schema}.audit_log`,
    logStarts: `${schema}.log_starts`,
    onceKeys: `${schema}.once_keys`,
    userUsage: `${schema}.user_usage`,
    apiKeys: `${schema}.api_keys`,
    rateLimits: `${schema}.rate_limits`,
    webhooks: `${schema}.webhooks`,
    embeddingUsage: `${schema}.embedding_usage`,
    migrations: `${schema}.migrations`,
    halfvec: `${extension}.halfvec`,
    halfvecCosine: `${extension}.halfvec_cosine_ops`,
    cosineDistance: `operator(${extension}.<=>)`,
    placement: unplaced(memories),
    secret: new Uint8Array(),
  };
}

/** The same names with another vector column. */
export const withVectorsIn = (column: string, names: Names): Names => ({
  ...names,
  embedding: pg.escapeIdentifier(column),
});

/** The same names with the buckets of the store. */
export const withBuckets = (names: Names, secret: Uint8Array, distributed: boolean): Names => ({
  ...names,
  placement: placementOf(names.memories, distributed, bucketOf(secret)),
  secret,
});
