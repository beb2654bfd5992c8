import type { Call } from '#contract';

/** What Pinecone keeps beside a vector. Flat; no null, no nested objects, no lists of numbers. */
export type Metadata = Record<string, MetadataValue>;
export type MetadataValue = string | number | boolean | readonly string[];

/** Pinecone's filter language; made in one place (`filter.ts`). */
export type Filter = Readonly<Record<string, unknown>>;

export interface StoredRecord {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata: Metadata;
}

/** A record to be stored. */
export interface NewRecord extends Omit<StoredRecord, 'values'> {
  readonly values: readonly number[] | Float32Array;
}

export interface Match {
  readonly id: string;
  /** As the index's metric has it. */
  readonly score: number;
  /** There when the query asked for it. */
  readonly metadata: Metadata | undefined;
}

/** Position of a write in its namespace's log; undefined where the service tells none. */
export type Lsn = number | undefined;

export interface QueryRequest {
  readonly vector: readonly number[] | Float32Array;
  /** 1 to 10,000. */
  readonly topK: number;
  readonly filter: Filter;
  readonly includeMetadata: boolean;
}

export interface RecordChange {
  readonly id: string;
  readonly values?: Float32Array;
  /** Merged into what is there; keys cannot be removed. */
  readonly metadata: Metadata;
}

/**
 * The index, one method for each request that verbs need. Every call has a deadline, ends when its signal fires, is
 * repeated where that is safe, and fails with an `OmpError`. Namespaces are always named.
 */
export interface Service {
  /** Replaces the whole record. */
  upsert(namespace: string, record: NewRecord, call: Call): Promise<Lsn>;
  /** Does nothing when there is no such record. */
  update(namespace: string, change: RecordChange, call: Call): Promise<Lsn>;
  /** Absent ids and namespaces are fine. */
  remove(namespace: string, ids: readonly string[], call: Call): Promise<Lsn>;
  /** Any number of ids; those that are absent are left out. */
  fetch(namespace: string, ids: readonly string[], call: Call): Promise<Map<string, StoredRecord>>;
  query(namespace: string, request: QueryRequest, call: Call): Promise<{ matches: Match[]; indexedLsn: Lsn }>;
  /** Ids in byte order. `limit` at most `MAX_LISTED`. `next` undefined: that was the last page. */
  list(
    namespace: string,
    page: { prefix: string; limit: number; token?: string | undefined },
    call: Call,
  ): Promise<{ ids: string[]; next: string | undefined }>;
  /** In no order. Undefined: this index does not know the request (API before 2025-10). */
  fetchByMetadata(
    namespace: string,
    page: { filter: Filter; limit: number; token?: string | undefined },
    call: Call,
  ): Promise<{ records: StoredRecord[]; next: string | undefined } | undefined>;
  stats(call: Call): Promise<{ dimension: number | undefined; metric: string | undefined }>;
  /** Requests that wait for their turn. */
  waiting(): number;
}

/** More ids a page than this are not established to be allowed. */
export const MAX_LISTED = 99;
/** Above this a query is refused. */
export const MAX_TOP_K = 10_000;
