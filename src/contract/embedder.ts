import type { Call } from './call.ts';
import type { UsageMeter } from './embedding-usage.ts';

/** Current statistics of an embedder, for the metrics. */
export interface EmbedderStats {
  /** Queued texts. */
  readonly queue_length: number;
  /** Queries since the start, with and without a cached vector. */
  readonly cache_hits: number;
  readonly cache_misses: number;
}

/** Identifies the embedder of a vector. Vectors of different identities are never compared. */
export interface EmbedderIdentity {
  readonly model: string;
  readonly dimensions: number;
}

/**
 * The vector of a text. Null: the gateway has no embedder, or the ingestion queue computes the vector of the memory
 * later.
 */
export type Vector = Float32Array | null;

/** Turns texts into vectors. */
export interface Embedder extends EmbedderIdentity {
  /**
   * One vector per text, in order, in the form of `toUnitHalf`: unit length, rounded so that every store computes the
   * same score. A text without any known word has the zero vector. Vectors of purpose `query` are cached.
   * `apps`: who gave each text (`Caller.app`), if they are texts of several callers.
   */
  embed(
    texts: readonly string[],
    purpose: 'document' | 'query',
    call: Call,
    apps?: readonly (string | null)[],
  ): Promise<Float32Array[]>;
  stats?(): EmbedderStats;
  /** Present if one pays for the embedder. */
  readonly usage?: UsageMeter | undefined;
  close(): Promise<void>;
}
