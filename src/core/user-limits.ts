import { type LimitKind, type LimitsOf, OmpError, type UserLimits } from '#contract';
import { globMatcher } from '#toolbox';
import type { Principal } from './grants.ts';

/** Limits for some users, by a glob of their ids, or for what a key adds, by a glob of its name. What it leaves out stays as it is. */
interface UserLimitOverride extends Partial<UserLimits> {
  readonly users?: string | undefined;
  readonly keys?: string | undefined;
}

export interface UserLimitOptions extends UserLimits {
  readonly overrides: readonly UserLimitOverride[];
}

/** The limits of users (Decision 59). */
export interface UserLimitRules {
  of(principal: Principal): LimitsOf;
  /** Counts the outcome of a change, if a limit has rejected it. */
  rejected(outcome: unknown): void;
  /** How many changes each limit has rejected. */
  rejections(): UserLimitRejections;
}

type UserLimitRejections = Readonly<Record<LimitKind, number>>;

export function createUserLimits({ overrides, ...general }: UserLimitOptions): UserLimitRules {
  const rejections: Record<LimitKind, number> = { memories: 0, bytes: 0, adds_per_day: 0 };
  const matcher = (glob: string | undefined) => (glob === undefined ? () => true : globMatcher(glob));
  const rules = overrides.map((limits) => ({
    limits,
    matchesUser: matcher(limits.users),
    matchesKey: matcher(limits.keys),
  }));
  return {
    of({ id, app }) {
      // A token names its subject itself, which may be called like a key.
      const key = id.startsWith('key:') ? app : null;
      const own = rules.filter((rule) => rule.limits.keys === undefined || (key !== null && rule.matchesKey(key)));
      return (user_id) => {
        const matching = own.filter((rule) => rule.matchesUser(user_id));
        const limit = (kind: LimitKind): number | null =>
          [...matching.map(({ limits }) => limits[kind]), general[kind]].find((one) => one !== undefined) ?? null;
        return { memories: limit('memories'), bytes: limit('bytes'), adds_per_day: limit('adds_per_day') };
      };
    },
    rejected(outcome) {
      if (outcome instanceof OmpError && outcome.limit) rejections[outcome.limit]++;
    },
    rejections: () => rejections,
  };
}
