import type { Call } from './call.ts';
import type { Memory, Ref } from './record.ts';

/** A version of a memory that a change has replaced. */
export interface MemoryVersion {
  /** Counts up from 1 with each change of the memory. Numbers are missing where versions were not kept, or were removed. */
  readonly version: number;
  /** The memory as it was; `updated_at`: when this version was written. Its `embedding_model` and `status` are null. */
  readonly memory: Memory;
}

export interface VersionQuery {
  readonly ref: Ref;
  /** Only versions with lower numbers; undefined: all. */
  readonly before?: number | undefined;
  readonly limit: number;
  /** Limit of the versions in bytes, as in `ListQuery`. */
  readonly max_bytes: number;
}

/** The current version of a memory, and versions before it. */
export interface MemoryVersions {
  readonly current: Memory;
  /** The number of the current version. */
  readonly version: number;
  /** Newest first. */
  readonly versions: readonly MemoryVersion[];
}

/** Asks for memories by who wrote them, and when: the time of a version is `at` of its `x-omp-origin`, else its `updated_at`. */
export interface WrittenQuery {
  readonly user_id: string;
  /** Inclusive. */
  readonly since: string;
  /** Only versions whose origin has this key; null: whose origin has none. Undefined: all, also those without an origin. */
  readonly key?: string | null | undefined;
  /** Only ids after this one. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/**
 * The versions of memories. A change that replaces one keeps it, in the step of the change; a change that changes nothing keeps none.
 * What deletes a memory removes its versions in the same step.
 */
export interface VersionStore {
  /** Undefined: no such memory. Versions that the reference would not find, for their scope, are left out. */
  list(query: VersionQuery, call: Call): Promise<MemoryVersions | undefined>;
  /**
   * Removes the versions before the current one, and returns their number. Undefined: no such memory. Writes an audit entry of its own,
   * which is no change.
   */
  purge(ref: Ref, call: Call): Promise<number | undefined>;
  /** Ids of the user's memories of which a version, the current one included, matches. In a fixed order. */
  writtenIn(query: WrittenQuery, call: Call): Promise<string[]>;
}

/** How versions are kept. */
export interface VersionOptions {
  /** A version is removed once its number is more than this below that of the current one. So a memory has at most as many before it. */
  readonly max: number;
  /** Days until a version that was replaced is removed; null: never. */
  readonly retention_days: number | null;
}
