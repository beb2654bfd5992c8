import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import type { Authenticator } from '../../src/core/grants.ts';
import { recordingLog } from './subject.ts';

/** What closes a gateway: keys that may do everything, by their names. */
export async function closedTo<Name extends string>(
  ...names: readonly Name[]
): Promise<{ authenticator: Authenticator; keys: Record<Name, string> }> {
  const made = names.map((name) => ({ name, ...newKey() }));
  const authenticator = await openAuthenticator({
    keys: made.map((key) => ({ name: key.name, key: toHashedKey(key), grants: ['*:*'] })),
    store: undefined,
    jwt: undefined,
    required: true,
    log: recordingLog(),
  });
  const keys = Object.fromEntries(made.map(({ name, key }) => [name, key])) as Record<Name, string>;
  return { authenticator, keys };
}
