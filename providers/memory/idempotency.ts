import { IDEMPOTENCY_AHEAD_MS, IDEMPOTENCY_TTL_MS, type IdempotencyKey, invalidRequest } from '#contract';
import type { Identity } from '#toolbox';
import { createTimeBuckets } from './time-buckets.ts';

/** With the input of a repeated add, its identity gives the record of the first. */
interface Use extends Identity {
  readonly fingerprint: string;
  readonly time: number;
}

export interface IdempotencyKeys {
  /** The record of the key; undefined: it is not in use. Throws `invalid_request` if the key was used with another input. */
  find(key: IdempotencyKey): Identity | undefined;
  use(key: IdempotencyKey, identity: Identity): void;
}

export function createIdempotencyKeys(): IdempotencyKeys {
  const buckets = createTimeBuckets(IDEMPOTENCY_TTL_MS, () => new Map<string, Use>(), IDEMPOTENCY_AHEAD_MS);
  const nameOf = ({ caller, key }: IdempotencyKey): string => JSON.stringify([caller, key]);
  return {
    find(key) {
      for (const bucket of buckets.newestFirst()) {
        const use = bucket.get(nameOf(key));
        const age = Date.now() - (use?.time ?? Number.NaN);
        if (!use || !(age < IDEMPOTENCY_TTL_MS && age >= -IDEMPOTENCY_AHEAD_MS)) continue;
        if (use.fingerprint === key.fingerprint) return use;
        throw invalidRequest('Idempotency-Key: this key was used for another memory; use a new one');
      }
      return undefined;
    },
    use(key, { id, created_at }) {
      const time = Date.now();
      buckets.at(time).set(nameOf(key), { fingerprint: key.fingerprint, time, id, created_at });
    },
  };
}
