import {
  ERASED_USE,
  erasedName,
  IDEMPOTENCY_AHEAD_MS,
  IDEMPOTENCY_TTL_MS,
  type IdempotencyKey,
  type KeyUse,
} from '#provider';
import { createTimeBuckets } from './time-buckets.ts';

/** The uses of idempotency keys, until they expire. */
export interface KeyUses {
  find(key: IdempotencyKey): KeyUse | undefined;
  /** `users`: those of the memories that were added. */
  set(key: IdempotencyKey, use: KeyUse, users: readonly string[]): void;
  /** Erases the uses for this user, and returns their number. */
  erase(user_id: string): number;
  count(user_id: string): number;
}

interface StoredUse {
  readonly use: KeyUse;
  readonly time: number;
  readonly users: ReadonlySet<string>;
}

export function createKeyUses(): KeyUses {
  const buckets = createTimeBuckets(IDEMPOTENCY_TTL_MS, () => new Map<string, StoredUse>(), IDEMPOTENCY_AHEAD_MS);
  // A key is a text of a client, which may name somebody.
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const nameOf = ({ caller, kind, key }: IdempotencyKey): string =>
    erasedName(secret, JSON.stringify([caller, kind, key]));
  const stored = (key: IdempotencyKey): StoredUse | undefined => {
    const name = nameOf(key);
    for (const bucket of buckets.newestFirst()) {
      const entry = bucket.get(name);
      const age = Date.now() - (entry?.time ?? Number.NaN);
      if (entry && age < IDEMPOTENCY_TTL_MS && age >= -IDEMPOTENCY_AHEAD_MS) return entry;
    }
    return undefined;
  };
  const ofUser = (user_id: string) =>
    buckets
      .newestFirst()
      .flatMap((bucket) =>
        [...bucket].flatMap(([name, one]) => (one.users.has(user_id) ? [{ bucket, name, one }] : [])),
      );
  return {
    find: (key) => stored(key)?.use,
    set(key, use, users) {
      const time = Date.now();
      buckets.at(time).set(nameOf(key), { use, time, users: new Set([...(stored(key)?.users ?? []), ...users]) });
    },
    erase(user_id) {
      const uses = ofUser(user_id);
      for (const { bucket, name, one } of uses) bucket.set(name, { use: ERASED_USE, time: one.time, users: new Set() });
      return uses.length;
    },
    count: (user_id) => ofUser(user_id).length,
  };
}
