import { IDEMPOTENCY_AHEAD_MS, IDEMPOTENCY_TTL_MS, type IdempotencyKey, type KeyUse } from '#provider';
import { createTimeBuckets } from './time-buckets.ts';

/** The uses of idempotency keys, until they expire. */
export interface KeyUses {
  find(key: IdempotencyKey): KeyUse | undefined;
  set(key: IdempotencyKey, use: KeyUse): void;
}

export function createKeyUses(): KeyUses {
  const buckets = createTimeBuckets(
    IDEMPOTENCY_TTL_MS,
    () => new Map<string, { readonly use: KeyUse; readonly time: number }>(),
    IDEMPOTENCY_AHEAD_MS,
  );
  const nameOf = ({ caller, key }: IdempotencyKey): string => JSON.stringify([caller, key]);
  return {
    find(key) {
      for (const bucket of buckets.newestFirst()) {
        const entry = bucket.get(nameOf(key));
        const age = Date.now() - (entry?.time ?? Number.NaN);
        if (entry && age < IDEMPOTENCY_TTL_MS && age >= -IDEMPOTENCY_AHEAD_MS) return entry.use;
      }
      return undefined;
    },
    set(key, use) {
      const time = Date.now();
      buckets.at(time).set(nameOf(key), { use, time });
    },
  };
}
