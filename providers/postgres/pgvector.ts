/** The first version with `halfvec`, which the gateway's tables need. */
export const LEAST_PGVECTOR = '0.7.0';
/** The first version whose filtered index scans continue until they have found enough. */
export const ITERATIVE_PGVECTOR = '0.8.0';
/** The first version that fixes CVE-2026-3172 and HNSW indexes damaged by vacuum. */
export const SAFE_PGVECTOR = '0.8.4';

/** What is wrong with an older version; undefined: nothing. */
export const unsafeVersion = (version: string): string | undefined =>
  isOlder(version, SAFE_PGVECTOR)
    ? `pgvector ${version} is older than ${SAFE_PGVECTOR}, which fixes CVE-2026-3172 and HNSW indexes damaged by vacuum`
    : undefined;

/** Compares versions of three numbers. */
export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i++) if (a?.[i] !== b?.[i]) return (a?.[i] ?? 0) < (b?.[i] ?? 0);
  return false;
}

/** The largest vector that pgvector indexes as `halfvec`. */
export const MAX_INDEXED_DIMENSIONS = 4_000;
