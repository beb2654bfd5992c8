import type { Memory } from '#contract';
import type { Lsn, Service } from './client/client.ts';
import type { Consistency } from './gateway-index/consistency.ts';
import type { Ids, Namespaces } from './gateway-index/ids.ts';

/** A record as this process wrote it lately. */
export interface Written {
  readonly memory: Memory;
  /** All zero: the text had no signal. */
  readonly vector: Float32Array;
}

/**
 * What this process wrote lately and reads may not show yet: consulted before and merged into every read. Entries leave
 * when they are old enough for every read to show them, or the oldest first when there are too many.
 */
export interface Overlay {
  /** Undefined: nothing was written lately; null: it was deleted. */
  get(id: string): Written | null | undefined;
  put(written: Written, where: { readonly namespace: string; readonly lsn: Lsn }): void;
  bury(memory: Memory, where: { readonly namespace: string; readonly lsn: Lsn }): void;
  /**
   * Everything of one user; `live` in the order of lists, newest first. With `shown`, how far a query's answer saw: only
   * what that answer cannot know, since from there on the index is right, also about what other gateways wrote.
   */
  of(user_id: string, shown?: Lsn): { readonly live: readonly Written[]; readonly deleted: ReadonlySet<string> };
  close(): void;
}

/** What the verbs on an index of ours work with. */
export interface Own {
  readonly service: Service;
  readonly ids: Ids;
  readonly namespaces: Namespaces;
  readonly overlay: Overlay;
  readonly visibility: Consistency;
  /** Of the embedder. */
  readonly model: string;
  readonly metric: Metric;
  /** Most records read for one page of a filtered list. */
  readonly max_scan: number;
}

export type Metric = 'cosine' | 'dotproduct' | 'euclidean';
