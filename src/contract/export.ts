import type { Vector } from './embedder.ts';
import type { Memory } from './record.ts';
import type { MemoryVersion } from './versions.ts';

/** A memory with its vector, as it moves from one store to another. */
export interface ExportedMemory {
  readonly memory: Memory;
  /** Null: the memory has no vector, or the query did not ask for vectors. */
  readonly vector: Vector;
  /** The number of the version that `memory` is. Given with `versions`. */
  readonly version?: number | undefined;
  /**
   * Versions before it, newest first: all, or the newest up to the first that exceeds `max_bytes`. Undefined: the query did not ask for them, or the
   * store has none.
   */
  readonly versions?: readonly MemoryVersion[] | undefined;
  /** How many older ones `versions` lacks. Given with `versions`. */
  readonly versions_left_out?: number | undefined;
}

export interface ExportQuery {
  /** `next` of the part before; undefined: from the beginning. */
  readonly after?: string | undefined;
  /** Only these memories, at most 100. */
  readonly ids?: readonly string[] | undefined;
  /** Only memories of this user. */
  readonly user_id?: string | undefined;
  /** Only memories whose `updated_at` is not before this. */
  readonly since?: string | undefined;
  /** Whether the items have their vectors. Without them, a backend that can leaves them out of what it sends. */
  readonly vectors: boolean;
  /** Whether the items have their versions. Given only if the provider has versions. */
  readonly versions?: boolean | undefined;
  readonly limit: number;
  /** Limit of the result in bytes, as in `ListQuery`. Vectors do not count, versions do; those of one memory never exceed it. */
  readonly max_bytes: number;
}

/** May be shorter than the limit, even empty, although there are more memories. */
export interface ExportPart {
  readonly items: readonly ExportedMemory[];
  /** Undefined: there are no more memories. */
  readonly next: string | undefined;
}
