import { addUsage, type Call, type LimitsOf, OmpError, overLimit, type Provider, type UserUsage } from '#contract';
import { createKeyedMutex } from '#toolbox';

/** Users that are remembered; beyond, the first is forgotten. */
const MAX_USERS = 10_000;

/** The rejection of a change that exceeds a limit; undefined: the change fits, and is counted. */
type Admit = (user_id: string, added: UserUsage) => OmpError | undefined;

/**
 * Users for whom a limit has rejected a change (Decision 59). They are counted before their next content is embedded, so that a rejected
 * content costs no embedding.
 */
export function createFullUsers(userUsage: NonNullable<Provider['userUsage']>) {
  const full = new Set<string>();
  // One count of a user at a time: it reads all that the user has.
  const mutex = createKeyedMutex();
  return {
    /** Notes what the store has decided about a change. */
    note(user_id: string, outcome: unknown): void {
      if (!(outcome instanceof OmpError && outcome.limit)) return;
      full.add(user_id);
      if (full.size > MAX_USERS) full.delete(full.values().next().value as string);
    },
    async look(user_ids: readonly string[], limits: LimitsOf, call: Call): Promise<Admit> {
      const known = new Map<string, UserUsage>();
      for (const user_id of new Set(user_ids))
        if (full.has(user_id)) known.set(user_id, await mutex(user_id, () => userUsage({ user_id }, call)));
      return (user_id, added) => {
        const used = known.get(user_id);
        if (!used) return undefined;
        const rejection = overLimit(used, added, limits(user_id));
        if (rejection) return rejection;
        known.set(user_id, addUsage(used, added));
        return undefined;
      };
    },
  };
}
