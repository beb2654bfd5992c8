import { randomUUID } from 'node:crypto';
import type { ConfiguredKey } from '../../src/auth/configured-keys.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { ALL_GRANTS, toGrants } from '../../src/core/grants.ts';
import type { Authenticator, Principal } from '../../src/core/principal.ts';
import { type Client, clientOf } from '../support/client.ts';
import type { Subject } from '../support/subject.ts';
import type { Key } from './rule.ts';

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** A client that sends these headers with every request. */
export const clientWith = ({ app }: Pick<Subject, 'app'>, headers: Record<string, string>): Client =>
  clientOf(async (path, init) => app.request(path, { ...init, headers: { ...headers, ...init?.headers } }, {}));

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

/** Lets the test's own callers in, whoever else the gateway knows: they prepare the store and look what became of it. */
export interface Backdoor {
  /** What the gateway is given: these callers first, then whatever `front` is at that time. */
  readonly authenticator: Authenticator;
  front: Authenticator;
  /** A credential of somebody who may do everything, or just what the key says. */
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
