import { randomUUID } from 'node:crypto';
import { ANONYMOUS, type Authenticator, type Principal, toGrants } from '../../src/core/grants.ts';

/** What a caller is let do; by default everything. */
export interface Rights {
  /** What the audit log calls it. */
  readonly app?: string | null;
  readonly users?: readonly string[] | null;
  /** `<action>:<scope glob>`. */
  readonly grants?: readonly string[];
  readonly untrusted?: boolean;
}

/** Callers a test makes up as it goes. Whoever else comes may do everything. */
export interface KnownCallers {
  readonly authenticator: Authenticator;
  /** The headers that a new caller with these rights sends along. */
  admit(rights?: Rights): Record<string, string>;
}

export const knownCallers = (): KnownCallers => {
  const principals = new Map<string, Principal>();
  return {
    authenticator: { authenticate: async (credential) => principals.get(credential ?? '') ?? ANONYMOUS },
    admit({ app = null, users = null, grants = ['*:*'], untrusted = false } = {}) {
      const token = randomUUID();
      principals.set(token, { id: `key:${token}`, app, users, grants: toGrants(grants), untrusted });
      return { authorization: `Bearer ${token}` };
    },
  };
};
