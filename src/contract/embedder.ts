import type { Call } from './call.ts';

/** What an operator may want to see of an embedder at this moment. */
export interface EmbedderStats {
  /** Texts that wait for their turn. */
  readonly waiting: number;
  /** Queries since the start, by whether their vector was remembered. */
  readonly cache_hits: number;
  readonly cache_misses: number;
}

/** Which embedder makes vectors. Vectors of two identities are never compared. */
export interface EmbedderIdentity {
  readonly model: string;
  readonly dimensions: number;
}

/**
 * The vector of a text. Null where there is none: the gateway has no embedder, or the vector of a memory follows through
 * the ingestion queue.
 */
export type Vector = Float32Array | null;

/** Turns texts into vectors. */
export interface Embedder extends EmbedderIdentity {
  /**
   * One vector a text, in order, as `toUnitHalf` makes them: unit length, rounded so that every store computes the same
   * score. A text without any signal gives the zero vector.
   * `purpose` lets queries be cached; documents are seen once.
   */
  embed(texts: readonly string[], purpose: 'document' | 'query', call: Call): Promise<Float32Array[]>;
  stats?(): EmbedderStats;
  close(): Promise<void>;
}
