import { randomUUID } from 'node:crypto';
import type { ConfiguredKey } from '../../src/auth/configured-keys.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import type { Authenticator, Principal } from '../../src/core/grants.ts';
import { ALL_GRANTS, toGrants } from '../../src/core/grants.ts';
import type { Key } from './rule.ts';

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** A key with the form in which a configuration holds it. */
export function configure({ grants, users }: Key, more: Partial<ConfiguredKey> = {}) {
  const fresh = newKey();
  const configured: ConfiguredKey = {
    name: `key ${fresh.id}`,
    key: toHashedKey(fresh),
    grants: [...grants],
    ...(users && { users: [...users] }),
    ...more,
  };
  return { ...fresh, configured };
}

/** Admits the callers of the test itself, beside those the gateway knows. They prepare the store and check it. */
export interface Backdoor {
  /** Tries these callers first, then `front`. */
  readonly authenticator: Authenticator;
  front: Authenticator;
  /** A credential that grants everything, or what the key says. */
  admit(app: string, key?: Key): string;
}

export function openBackdoor(): Backdoor {
  const principals = new Map<string, Principal>();
  const door: Backdoor = {
    front: { authenticate: () => Promise.reject(new Error('no authenticator yet')) },
    admit(app, key) {
      const token = randomUUID();
      const rights = key ? { users: key.users, grants: toGrants(key.grants) } : { users: null, grants: ALL_GRANTS };
      principals.set(token, { id: `key:${token}`, app, ...rights });
      return token;
    },
    authenticator: {
      authenticate: async (credential, call) =>
        principals.get(credential ?? '') ?? door.front.authenticate(credential, call),
    },
  };
  return door;
}
