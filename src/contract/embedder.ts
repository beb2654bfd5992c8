import type { Call } from './call.ts';

/** What an operator may want to see of an embedder at this moment. */
export interface EmbedderStats {
  /** Texts that wait for their turn. */
  readonly waiting: number;
  /** Queries since the start, by whether their vector was remembered. */
  readonly cache_hits: number;
  readonly cache_misses: number;
}

/** Turns texts into vectors. Model and dimensions together are its identity: vectors of two identities are never compared. */
export interface Embedder {
  readonly model: string;
  readonly dimensions: number;
  /**
   * One vector a text, in order, as `toUnitHalf` makes them: unit length, rounded so that every store computes the same
   * score. A text without any signal gives the zero vector.
   * `purpose` lets queries be cached; documents are seen once.
   */
  embed(texts: readonly string[], purpose: 'document' | 'query', call: Call): Promise<Float32Array[]>;
  stats?(): EmbedderStats;
  close(): Promise<void>;
}
