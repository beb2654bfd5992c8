import type { Visible } from './record.ts';

/** Asks for the users that have memories a caller may read. */
export interface UserListQuery extends Visible {
  /** The users that the caller may access, as in `Ref`. */
  readonly users: readonly string[] | null;
  /** The beginning of the ids of the users. */
  readonly prefix?: string;
  /** Only users after this one in the provider's order. */
  readonly after?: string;
  /** Maximum users in the result. */
  readonly limit: number;
}

/** A user and those of its memories that the query may see: at least one. */
export interface UserSummary {
  readonly user_id: string;
  readonly count: number;
  /** The latest `updated_at`. */
  readonly last_write: string;
}

/** May be shorter than the limit, even empty, although there are more users: a provider looks at a bounded number. */
export interface UserPart {
  readonly items: readonly UserSummary[];
  /** `after` of the next part; undefined: there are no more users. */
  readonly next: string | undefined;
}

/** Asks for the counts of one user's memories. */
export interface StatsQuery extends Visible {
  readonly user_id: string;
  /** Maximum scopes, and maximum tags, in the result. */
  readonly limit: number;
}

/** Counts of those memories of a user that the query may see; times are null if there are none. */
export interface UserStats {
  readonly count: number;
  /** `created_at` of the oldest and the newest memory. */
  readonly oldest: string | null;
  readonly newest: string | null;
  /** The latest `updated_at`. */
  readonly last_write: string | null;
  /** Largest count first, then in byte order; null, for memories without a scope, before others. */
  readonly scopes: readonly { readonly scope: string | null; readonly count: number }[];
  readonly tags: readonly { readonly tag: string; readonly count: number }[];
  /** Counts by `created_at` in UTC: by day if the newest is at most 92 × 24 hours after the oldest, else by month. */
  readonly created: {
    readonly per: 'day' | 'month';
    /** The newest `MAX_PERIODS` with memories, oldest first. `from` is the first day, such as `2026-03-01`. */
    readonly counts: readonly { readonly from: string; readonly count: number }[];
  };
}

/** Maximum periods in `UserStats.created`: ten years of months. */
export const MAX_PERIODS = 120;
/** The longest time that is counted by day. */
export const MAX_DAYS = 92;

/** The counts of a user without memories. */
export const NO_STATS: UserStats = {
  count: 0,
  oldest: null,
  newest: null,
  last_write: null,
  scopes: [],
  tags: [],
  created: { per: 'day', counts: [] },
};
