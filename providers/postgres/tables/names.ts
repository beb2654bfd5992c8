import { hash } from 'node:crypto';
import pg from 'pg';

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
  /** Whether Citus distributes the tables, so that a statement must name the bucket. */
  readonly distributed: boolean;
  bucketOf(user_id: string): number;
  /** Of the store: without it, nobody can tell a bucket or a hash of a text from another one. */
  readonly secret: Uint8Array;
}

export function toNames(schemaName: string, extensionSchema: string): Names {
  const schema = pg.escapeIdentifier(schemaName);
  const extension = pg.escapeIdentifier(extensionSchema);
  return {
    schema,
    memories: `${schema}.memories`,
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
    distributed: false,
    bucketOf: () => NO_BUCKET,
    secret: new Uint8Array(),
  };
}

/** The bucket on a single server, which does not read it. */
export const NO_BUCKET = 0;

/** The same names with another vector column. */
export const withVectorsIn = (column: string, names: Names): Names => ({
  ...names,
  embedding: pg.escapeIdentifier(column),
});

/*
 * Every user has a bucket. On Citus every row of a user holds it, and the tables are distributed by it: a statement that names the
 * bucket runs on one shard. The bucket is also the end of an id, so that an id alone leads to the shard of its memory.
 */

/** So many that shards become even, and so few that an id says little about its user: 15 bits. */
export const BUCKETS = 2 ** 15;

/** The bucket of a user. Without the secret of the store nobody can tell which users share one. */
export const bucketOf =
  (secret: Uint8Array) =>
  (user_id: string): number =>
    Number.parseInt(hash('sha256', Buffer.concat([secret, Buffer.from(user_id)])).slice(0, 4), 16) % BUCKETS;

/** The same in SQL. Both arguments are SQL. */
export const bucketSql = (secret: string, user_id: string): string => {
  const hash = `sha256(${secret} || convert_to(${user_id}, 'UTF8'))`;
  return `((get_byte(${hash}, 0) & 127) * 256 + get_byte(${hash}, 1))::int2`;
};

/** The digits are Crockford's base 32, as in the rest of an id. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
export const ID_WITH_BUCKET = /^mem_[0-9A-HJKMNP-TV-Z]{26}([0-9A-HJKMNP-TV-Z]{3})$/;

/** The id of a new memory in this bucket. `id`: unique already. */
export const withBucket = (id: string, bucket: number): string =>
  `${id}${DIGITS[bucket >> 10]}${DIGITS[(bucket >> 5) & 31]}${DIGITS[bucket & 31]}`;

/** The bucket that an id names; undefined: it was made elsewhere, or before there were buckets. */
export function bucketIn(id: string): number | undefined {
  const [, ending] = ID_WITH_BUCKET.exec(id) ?? [];
  return ending === undefined ? undefined : [...ending].reduce((sum, digit) => 32 * sum + DIGITS.indexOf(digit), 0);
}

/** The same names with the buckets of the store. */
export const withBuckets = (names: Names, secret: Uint8Array, distributed: boolean): Names => ({
  ...names,
  distributed,
  bucketOf: bucketOf(secret),
  secret,
});
