/** How the server was started; what an account's owner decides when making an index, and what tests vary. */
export interface Settings {
  /** Numbers in each vector. */
  readonly dimension: number;
  readonly metric: Metric;
  /** The newest interface it speaks: Pinecone Local stopped at 2025-01. */
  readonly apiVersion: ApiVersion;
  /** The only key that is let in; any, when absent. */
  readonly apiKey?: string;
  /** Whether answers carry log sequence numbers. */
  readonly lsn: boolean;
  /** The only metadata keys that filters may name. Default: any. */
  readonly filterable?: readonly string[];
  /** Whether the documented 5 requests a second of `fetch_by_metadata` are enforced. */
  readonly rateLimits: boolean;
}

export const METRICS = ['cosine', 'dotproduct', 'euclidean'] as const;
export type Metric = (typeof METRICS)[number];

export const API_VERSIONS = ['2026-04', '2025-01'] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

/**
 * How far reading is behind writing; all conditions hold together. With `fetchMs`, `fetch` and `list` follow that alone
 * (they have no sequence numbers and an indexing delay of their own).
 */
export interface Lag {
  /** A write is visible after so many milliseconds. */
  readonly ms?: number;
  /** A write is visible after so many later writes to its namespace. */
  readonly writes?: number;
  /** Nothing new becomes visible. */
  readonly held?: boolean;
  readonly fetchMs?: number;
}
