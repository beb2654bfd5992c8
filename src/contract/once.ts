/** Makes an add repeatable: a second one under the same caller and key changes nothing. */
export interface Once {
  /** `Caller.id`: keys of different callers have nothing to do with each other. */
  readonly caller: string;
  readonly key: string;
  /** Digest of the input, to tell a repetition from a key that is used for something else. */
  readonly fingerprint: string;
}

/** How long a key is remembered, in milliseconds. */
export const ONCE_TTL_MS = 24 * 60 * 60 * 1000;

/**
 * A key that seems to be used later than this from now was used while the clock was wrong, and is forgotten. So much,
 * because forgetting too early adds a memory twice.
 */
export const ONCE_AHEAD_MS = 7 * ONCE_TTL_MS;
