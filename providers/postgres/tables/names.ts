import pg from 'pg';

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
  };
}

/** The same names with another vector column. */
export const withVectorsIn = (column: string, names: Names): Names => ({
  ...names,
  embedding: pg.escapeIdentifier(column),
});
