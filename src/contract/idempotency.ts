import type { Call } from './call.ts';
import type { Vector } from './embedder.ts';
import type { Memory, NewMemory } from './record.ts';

/** Makes an add idempotent: a second add with the same caller and key changes nothing. */
export interface IdempotencyKey {
  /** `Caller.id`: keys of different callers are independent. */
  readonly caller: string;
  readonly key: string;
  /** Digest of the input. Detects a key that is used again with another input. */
  readonly fingerprint: string;
}

/** An add that may be repeated. Without an input only its key is checked. */
export interface KeyedAdd {
  readonly input: NewMemory | undefined;
  readonly key: IdempotencyKey;
}

/** Idempotent adds, in two steps: a repeated add needs no vector. */
export interface IdempotentAdd {
  /**
   * For each add, in order: the result of the first one with its key, completed from its input; undefined: the key is not in
   * use, or there is no input. Throws `invalid_request` if a key was used with another input. All keys have one caller and
   * one fingerprint.
   */
  firstAnswers(adds: readonly KeyedAdd[], call: Call): Promise<(Memory | undefined)[]>;
  /**
   * `Provider.add`, which stores the key in the same transaction. Undefined: the key is in use by now and nothing was
   * added.
   */
  add(input: NewMemory, vector: Vector, key: IdempotencyKey, call: Call): Promise<Memory | undefined>;
}

/** Lifetime of a key, in milliseconds. */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/**
 * A key whose time is further in the future was stored while the clock was wrong, and is evicted. The limit is generous,
 * since evicting a key too early adds a memory twice.
 */
export const IDEMPOTENCY_AHEAD_MS = 7 * IDEMPOTENCY_TTL_MS;
