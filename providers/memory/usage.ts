import {
  type Memory,
  NO_USAGE,
  type OmpError,
  overLimit,
  type UserLimits,
  type UserUsage,
  usageOf,
  utcDay,
} from '#provider';

/** What a user has, exactly: nothing runs between a check and the change that it is for. */
export interface Usage {
  now(): UserUsage;
  /** Notes that a memory has come or gone. */
  count(memory: Memory, sign: 1 | -1): void;
  /** Counts an add; undefined if it fits. */
  admitAdd(memory: { readonly content: string }, limits: UserLimits): OmpError | undefined;
  /** Undefined: the change of the content fits. */
  admitChange(before: Memory, after: Memory, limits: UserLimits): OmpError | undefined;
}

export function createUsage(entries: readonly { readonly memory: Memory }[]): Usage {
  /** Undefined until limits ask for it: without them it costs nothing. */
  let bytes: number | undefined;
  let adds = { day: '', count: 0 };
  const addsOn = (day: string) => (adds.day === day ? adds.count : 0);
  const now = (): UserUsage => {
    bytes ??= entries.reduce((sum, { memory }) => sum + usageOf(memory).bytes, 0);
    return { memories: entries.length, bytes, adds_per_day: addsOn(utcDay()) };
  };
  return {
    now,
    count(memory, sign) {
      if (bytes !== undefined) bytes += sign * usageOf(memory).bytes;
    },
    admitAdd(memory, limits) {
      const rejection = overLimit(now(), usageOf(memory), limits);
      const day = utcDay();
      if (!rejection) adds = { day, count: addsOn(day) + 1 };
      return rejection;
    },
    admitChange: (before, after, limits) =>
      overLimit(now(), { ...NO_USAGE, bytes: usageOf(after).bytes - usageOf(before).bytes }, limits),
  };
}
