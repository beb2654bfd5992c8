/** A memory without its vector. */
export interface QueuedMemory {
  readonly id: string;
  readonly content: string;
  /** How often the embedder failed because of this text. */
  readonly attempts: number;
  /** Who wrote it last (`Origin.key`). */
  readonly app?: string | null;
}

export interface EmbeddedMemory {
  readonly row: QueuedMemory;
  readonly vector: Float32Array;
}

/** A memory that the embedder failed on while it worked for others. */
export interface FailedMemory {
  readonly id: string;
  /** Public text. */
  readonly reason: string;
  /** Seconds until the retry; null: no retry. */
  readonly pause: number | null;
}

/** Memories leased to one gateway for embedding. A memory leaves the claim when its content changes. */
export interface IngestionClaim {
  /** Number of claimed memories, including those that already have their vectors. */
  readonly taken: number;
  readonly rows: readonly QueuedMemory[];
  /** Stores the results. Returns the memories without a further retry. */
  settle(
    vectors: readonly EmbeddedMemory[],
    failures: readonly FailedMemory[],
  ): Promise<readonly { id: string; error: string }[]>;
  /** Returns unsettled memories to the queue. Must be called if `taken` is not 0. */
  end(): Promise<void>;
}

/** Memories whose vectors are computed later. All gateways of one backend share the queue. */
export interface IngestionQueue {
  /** Whether `add` and `update` get no vectors and queue the memory. */
  readonly deferred: boolean;
  claim(): Promise<IngestionClaim>;
  /** Removes failed memories that have a vector by now. */
  clearFailed(): Promise<void>;
}

/** Number of memories without a vector, by status. */
export type Backlog = Readonly<Record<'queued' | 'indexing' | 'failed', number>>;
