import pg from 'pg';
import { bucketOf } from './buckets.ts';

/** Quoted names of everything that the statements use. */
export interface Names {
  /** The schema itself. */
  readonly schema: string;
  readonly memories: string;
  /** The column of the vectors in use. */
  readonly embedding: string;
  readonly largeUsers: string;
  readonly ingestion: string;
  readonly store: string;
  readonly auditLog: string;
  readonly onceKeys: string;
  readonly apiKeys: string;
  readonly rateLimits: string;
  readonly migrations: string;
  /** pgvector's type and operators, qualified: the extension may be in any schema. */
  readonly halfvec: string;
  readonly halfvecCosine: string;
  readonly cosineDistance: string;
  /** Whether Citus distributes the tables, so that a statement must name the bucket. */
  readonly distributed: boolean;
  bucketOf(user_id: string): number;
}

export function toNames(schemaName: string, extensionSchema: string): Names {
  const schema = pg.escapeIdentifier(schemaName);
  const extension = pg.escapeIdentifier(extensionSchema);
  return {
    schema,
    memories: `${schema}.memories`,
    embedding: pg.escapeIdentifier('embedding'),
    largeUsers: `${schema}.large_users`,
    ingestion: `${schema}.ingestion`,
    store: `${schema}.store`,
    auditLog: `${schema}.audit_log`,
    onceKeys: `${schema}.once_keys`,
    apiKeys: `${schema}.api_keys`,
    rateLimits: `${schema}.rate_limits`,
    migrations: `${schema}.migrations`,
    halfvec: `${extension}.halfvec`,
    halfvecCosine: `${extension}.halfvec_cosine_ops`,
    cosineDistance: `operator(${extension}.<=>)`,
    distributed: false,
    bucketOf: () => NONE,
  };
}

/** A single server does not read it. */
const NONE = 0;

/** The same names with the buckets of the store. */
export const withBuckets = (names: Names, secret: Uint8Array, distributed: boolean): Names => ({
  ...names,
  distributed,
  bucketOf: (user_id) => bucketOf(secret, user_id),
});

/** The bucket that a statement about this user's rows names; undefined: none, on a single server. */
export const shardOf = (names: Names, user_id: string): number | undefined =>
  names.distributed ? names.bucketOf(user_id) : undefined;

/** The bucket in rows of this user that are not made from a memory: 0 on a single server. */
export const storedBucket = (names: Names, user_id: string): number => shardOf(names, user_id) ?? NONE;

/** SQL that limits a table to the bucket of the statement, its first parameter. `alias`: with its dot. */
export const inShard = ({ distributed }: Names, alias = ''): string =>
  distributed ? `${alias}bucket = $1::int2` : 'true';

/** The same for a statement with several buckets, in the parameter `place`. */
export const inShards = ({ distributed }: Names, place = '$1', alias = ''): string =>
  distributed ? `${alias}bucket = any(${place}::int2[])` : 'true';

/** SQL that lets a statement about all shards join two tables shard by shard. */
export const sameBucket = ({ distributed }: Names, one: string, other: string): string =>
  distributed ? `${one}.bucket = ${other}.bucket` : 'true';

/** Locks rows for one of several gateways. Citus locks the rows of one bucket only, so there they are checked again when they change. */
export const skipLocked = ({ distributed }: Names): string => (distributed ? '' : 'for update skip locked');

/** The same names with another vector column. */
export const withVectorsIn = (column: string, names: Names): Names => ({
  ...names,
  embedding: pg.escapeIdentifier(column),
});
