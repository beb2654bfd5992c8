import { OmpError } from './errors.ts';
import type { Memory } from './record.ts';

/** Names a request that may be sent again. Keys of different callers are independent. */
export interface IdempotencyKey {
  /** `Caller.id`. */
  readonly caller: string;
  /** What the request is: an add and a batch may have the same key. */
  readonly kind: 'add' | 'batch';
  /** Printable ASCII, at most 255 characters. */
  readonly key: string;
}

/** Asks for the use of a key. */
export interface KeyQuery extends IdempotencyKey {
  /** The owners of the memories in the request. */
  readonly users: readonly string[];
}

/** What a new memory gets from the gateway: with its input, the whole record. */
export type Identity = Pick<Memory, 'id' | 'created_at' | 'embedding_model' | 'status'>;

/** The use of an idempotency key. */
export interface KeyUse {
  /** Digest of the input of the request. */
  readonly fingerprint: string;
  /** For each memory of the request, in order: what was added; null: nothing. */
  readonly added: readonly (Identity | null)[];
}

/** The use of a key whose memories were erased with their user: no request has its fingerprint, so none adds them again. */
export const ERASED_USE: KeyUse = Object.freeze({ fingerprint: '', added: [] });

/** The key that an add stores in the same transaction as its memories. */
export interface KeyClaim extends IdempotencyKey {
  readonly fingerprint: string;
  /** The use that the gateway has read; undefined: none. If another request has used the key since, nothing is added. */
  readonly before: KeyUse | undefined;
  /** The places of the new memories in the request, which has `size` memories. */
  readonly places: readonly number[];
  readonly size: number;
}

/** Lifetime of a key, in milliseconds. */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/**
 * A key whose time is further in the future was stored while the clock was wrong, and is evicted. The limit is generous,
 * since evicting a key too early adds a memory twice.
 */
export const IDEMPOTENCY_AHEAD_MS = 7 * IDEMPOTENCY_TTL_MS;

/** The use of the key after an add with these outcomes, in the order of `places`. */
export function usedBy(
  { fingerprint, before, places, size }: KeyClaim,
  outcomes: readonly (Identity | OmpError)[],
): KeyUse {
  const identities: (Identity | null)[] = Array.from({ length: size }, (_, place) => before?.added[place] ?? null);
  for (const [i, place] of places.entries()) {
    const outcome = outcomes[i] as Identity | OmpError;
    if (outcome instanceof OmpError) continue;
    const { id, created_at, embedding_model, status } = outcome;
    identities[place] = { id, created_at, embedding_model, status };
  }
  return { fingerprint, added: identities };
}
