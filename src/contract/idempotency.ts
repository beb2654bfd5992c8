import type { Call } from './call.ts';
import type { Vector } from './embedder.ts';
import type { Memory, NewMemory } from './record.ts';

/** Makes an add repeatable: a second one under the same caller and key changes nothing. */
export interface IdempotencyKey {
  /** `Caller.id`: keys of different callers have nothing to do with each other. */
  readonly caller: string;
  readonly key: string;
  /** Digest of the input, to tell a repetition from a key that is used for something else. */
  readonly fingerprint: string;
}

/** Adds that may be repeated, in two steps: a repetition needs no vector. */
export interface IdempotentAdd {
  /**
   * What the add under this key was answered, with the content of this input; undefined: the key is not in use. Throws
   * `invalid_request` when it was used for another input.
   */
  firstAnswer(input: NewMemory, key: IdempotencyKey, call: Call): Promise<Memory | undefined>;
  /** `Provider.add`, and takes the key in the same change. Undefined: nothing was added, the key is in use by now. */
  add(input: NewMemory, vector: Vector, key: IdempotencyKey, call: Call): Promise<Memory | undefined>;
}

/** How long a key is remembered, in milliseconds. */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/**
 * A key that seems to be used later than this from now was used while the clock was wrong, and is forgotten. So much,
 * because forgetting too early adds a memory twice.
 */
export const IDEMPOTENCY_AHEAD_MS = 7 * IDEMPOTENCY_TTL_MS;
