const REMEMBERED_MS = 60_000;
/** Of so many users at most; the longest known are forgotten first. */
const MOST = 10_000;

/** Users who lately had too many rows to look at each of them. Being forgotten costs one look, never a result. */
export interface LargeUsers {
  has(user: string): boolean;
  add(user: string): void;
}

export function rememberLargeUsers(now: () => number = () => performance.now()): LargeUsers {
  const since = new Map<string, number>();
  return {
    has(user) {
      const found = since.get(user);
      if (found === undefined) return false;
      if (now() - found < REMEMBERED_MS) return true;
      since.delete(user);
      return false;
    },
    add(user) {
      since.delete(user);
      since.set(user, now());
      for (const oldest of since.keys()) {
        if (since.size <= MOST) break;
        since.delete(oldest);
      }
    },
  };
}
