/** A memory without its vector. */
export interface QueuedMemory {
  readonly id: string;
  readonly content: string;
  /** How often its own text made the embedder fail. */
  readonly attempts: number;
}

export interface EmbeddedMemory {
  readonly row: QueuedMemory;
  readonly vector: Float32Array;
}

/** A text that could not be embedded, while others could. */
export interface FailedMemory {
  readonly id: string;
  /** Public text. */
  readonly reason: string;
  /** Seconds until it is tried again; null: never. */
  readonly pause: number | null;
}

/** Memories that one gateway embeds, until the lease ends or their contents change. */
export interface IngestionClaim {
  /** Counts those that have their vectors by now. */
  readonly taken: number;
  readonly rows: readonly QueuedMemory[];
  /** Returns what is not tried again. */
  settle(
    embedded: readonly EmbeddedMemory[],
    failed: readonly FailedMemory[],
  ): Promise<readonly { id: string; error: string }[]>;
  /** Call it in the end if anything was taken: it returns to the queue what was not settled. */
  end(): Promise<void>;
}

/** Memories that wait for their vectors. All gateways on one backend share the queue. */
export interface IngestionQueue {
  /** Whether `add` and `update` come without vectors and put the memory into this queue. */
  readonly deferred: boolean;
  claim(): Promise<IngestionClaim>;
  /** Removes failed memories that have a vector by now. */
  clearFailed(): Promise<void>;
}

/** Memories whose vectors are yet to be computed. */
export type Backlog = Readonly<Record<'queued' | 'indexing' | 'failed', number>>;
