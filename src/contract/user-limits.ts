import { OmpError } from './errors.ts';

/** What is limited of each user. `bytes`: those of the contents, in UTF-8. `adds_per_day`: memories added since 00:00 UTC. */
export const LIMIT_KINDS = ['memories', 'bytes', 'adds_per_day'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

/** Null: no limit. */
export type UserLimits = { readonly [Kind in LimitKind]: number | null };

/** What a user has of each, or what a change adds. Deletions give no adds back. */
export type UserUsage = { readonly [Kind in LimitKind]: number };

/** What the caller of a request may add for a user. What it may add without a limit counts too. */
export type LimitsOf = (user_id: string) => UserLimits;

export const NO_LIMITS: UserLimits = { memories: null, bytes: null, adds_per_day: null };

export const NO_USAGE: UserUsage = { memories: 0, bytes: 0, adds_per_day: 0 };

/** What an add of this content adds. */
export const usageOf = ({ content }: { readonly content: string }): UserUsage => ({
  memories: 1,
  bytes: Buffer.byteLength(content),
  adds_per_day: 1,
});

/** Undefined: the user may have this in addition to `used`. A limit that a change adds nothing to does not reject it. */
export function overLimit(used: UserUsage, added: UserUsage, limits: UserLimits): OmpError | undefined {
  // First those that no waiting helps against.
  const kind = LIMIT_KINDS.find((each) => added[each] > 0 && used[each] + added[each] > (limits[each] ?? Infinity));
  return kind && limitReached(kind);
}

export const addUsage = (one: UserUsage, other: UserUsage): UserUsage => ({
  memories: one.memories + other.memories,
  bytes: one.bytes + other.bytes,
  adds_per_day: one.adds_per_day + other.adds_per_day,
});

const DAY_MS = 24 * 60 * 60 * 1000;

/** The day of `adds_per_day`, such as `2026-03-01`. */
export const utcDay = (now = Date.now()): string => new Date(now).toISOString().slice(0, 10);

/** Names no number: a full user has as much as the limit, and the caller may not be allowed to know that. */
function limitReached(limit: LimitKind): OmpError {
  const ask = `or ask the operator for a higher user_limits.${limit}`;
  if (limit === 'memories') {
    const message = `this user has as many memories as it may have; delete some, ${ask}`;
    return new OmpError('payload_too_large', message, { limit });
  }
  if (limit === 'bytes') {
    const message = `content: the contents of this user would exceed their limit of bytes; delete or shorten some, ${ask}`;
    return new OmpError('payload_too_large', message, { limit });
  }
  const retryAfter = Math.ceil((DAY_MS - (Date.now() % DAY_MS)) / 1_000);
  const message = `no more memories of this user may be added today; wait until 00:00 UTC, ${ask}`;
  return new OmpError('rate_limited', message, { limit, retryAfter });
}
