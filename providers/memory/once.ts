import { invalidRequest, ONCE_AHEAD_MS, ONCE_TTL_MS, type Once } from '#contract';
import { createDrawers } from './drawers.ts';

/** What tells the first answer, together with the input that a repetition brings along. */
export interface Identity {
  readonly id: string;
  readonly created_at: string;
}

interface Use {
  readonly fingerprint: string;
  readonly time: number;
  /** Undefined when it came to nothing. */
  readonly identity: Promise<Identity | undefined>;
}

export interface OnceKeys {
  /**
   * Does `add` unless this key was used before; then, what that gave, be it still under way. An attempt that fails
   * leaves the key unused. Throws `invalid_request` when the key was used for another input.
   */
  run(once: Once, signal: AbortSignal, add: () => Promise<Identity>): Promise<Identity>;
}

export function createOnceKeys(): OnceKeys {
  const drawers = createDrawers(ONCE_TTL_MS, () => new Map<string, Use>(), ONCE_AHEAD_MS);
  const find = (name: string): Use | undefined => {
    for (const drawer of drawers.newestFirst()) {
      const use = drawer.get(name);
      const age = Date.now() - (use?.time ?? Number.NaN);
      if (age < ONCE_TTL_MS && age >= -ONCE_AHEAD_MS) return use;
    }
    return undefined;
  };

  return {
    async run({ caller, key, fingerprint }, signal, add) {
      const name = JSON.stringify([caller, key]);
      for (let use = find(name); use; use = find(name)) {
        const identity = await use.identity;
        // Whoever it belonged to failed: it is free, unless somebody else was faster.
        if (!identity) continue;
        if (use.fingerprint !== fingerprint) {
          throw invalidRequest('Idempotency-Key: this key was used for another memory; take a new one');
        }
        return identity;
      }
      // Whoever gave up meanwhile may come again with the same key.
      signal.throwIfAborted();
      const time = Date.now();
      const drawer = drawers.at(time);
      const added = add().then(
        ({ id, created_at }) => ({ id, created_at }),
        (error: unknown) => {
          drawer.delete(name);
          throw error;
        },
      );
      drawer.set(name, { fingerprint, time, identity: added.catch(() => undefined) });
      return added;
    },
  };
}
