import type { Call, Memory } from '#contract';
import type { Lsn, Service } from './service.ts';

/** Makes and reads ids: `mem_` + U + T + R (`ids.ts`). */
export interface Ids {
  /** U of a user: 24 characters that nobody without the secret can tie to a user. */
  userPart(user_id: string): string;
  /** A new id; `created_ms` is later recovered from it. */
  make(user_id: string, created_ms: number): string;
}

/** Where records are. */
export interface Namespaces {
  /** By the user part of an id. */
  of(userPart: string): string;
  /** The namespace of the record that describes the index. */
  readonly own: string;
}

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

/** What is known of how far reading is behind writing, per namespace. */
export interface Visibility {
  /** A write succeeded: the answer gets a token that names it. */
  wrote(namespace: string, lsn: Lsn, call: Call): void;
  /** A query's answer told how far it saw. */
  saw(namespace: string, lsn: Lsn): void;
  /** Waits a while until queries of the namespace show what the call's token names, and tells the call if they do not. */
  caughtUp(namespace: string, call: Call): Promise<void>;
  /** Whether the call's token names a write to the namespace. */
  names(namespace: string, call: Call): boolean;
  /** Whether queries are known to show this write. */
  shows(namespace: string, lsn: number): boolean;
}

/** What the verbs on an index of ours work with. */
export interface Own {
  readonly service: Service;
  readonly ids: Ids;
  readonly namespaces: Namespaces;
  readonly overlay: Overlay;
  readonly visibility: Visibility;
  /** Of the embedder. */
  readonly model: string;
  readonly metric: Metric;
  /** Most records read for one page of a filtered list. */
  readonly max_scan: number;
}

export type Metric = 'cosine' | 'dotproduct' | 'euclidean';
