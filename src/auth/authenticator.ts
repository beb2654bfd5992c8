import type { Call, KeyStore, Log } from '#contract';
import { ANYBODY, type Authenticator } from '../core/principal.ts';
import type { ConfiguredKey } from './configured-keys.ts';
import { KEY_PREFIX, missing, refused } from './credentials.ts';
import { openKeyRing } from './key-ring.ts';
import type { TokenOptions } from './tokens.ts';
import { ownCall, waitFor } from './waiting.ts';

export interface AuthenticatorOptions {
  readonly keys: readonly ConfiguredKey[];
  /** Where more keys may be kept. */
  readonly store: KeyStore | undefined;
  /** Undefined: tokens are not accepted. */
  readonly jwt: TokenOptions | undefined;
  /** Closed even while no key exists. */
  readonly required: boolean;
  readonly log: Log;
}

export interface GatewayAuthenticator extends Authenticator {
  /** Whether everybody may do everything: no key was ever made. Throws `provider_error` when that cannot be found out. */
  isOpen(): Promise<boolean>;
  close(): Promise<void>;
}

/** The first key that is made closes a running gateway within this time. */
const OPEN_MS = 5_000;

/**
 * Finds out who calls, by key or token (Decision 13). A gateway that was once closed never opens again.
 * While it is open a credential is ignored, since clients send dummies, unless it is one of our keys: whoever holds
 * one counts on its limits, and a key made a moment ago works, and closes this replica, at once.
 */
export async function openAuthenticator(options: AuthenticatorOptions): Promise<GatewayAuthenticator> {
  const { keys, store, jwt, log } = options;
  const ring = openKeyRing({ configured: keys, store, log });
  const tokens = jwt && (await import('./tokens.ts')).openTokens(jwt);
  const door = openDoor(options);
  return {
    async authenticate(credential, call) {
      if (credential?.startsWith(KEY_PREFIX)) {
        const principal = await ring.principal(credential, call);
        door.shut();
        return principal;
      }
      if (await door.isOpen(call)) return ANYBODY;
      if (credential === undefined) throw missing();
      if (!tokens) throw refused('it is no key, and tokens are not configured');
      return tokens.principal(credential, call);
    },
    isOpen: () => door.isOpen(),
    close: () => ring.close(),
  };
}

/** Whether callers are let in without a credential. Once shut it stays shut. */
function openDoor({ keys, store, jwt, required }: AuthenticatorOptions) {
  let shut = required || keys.length > 0 || jwt !== undefined;
  let openUntil = store ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  let asking: Promise<void> | undefined;
  const ask = async () => {
    const asked = performance.now();
    if (await store?.hasAny(ownCall('keys'))) shut = true;
    openUntil = asked + OPEN_MS;
  };
  return {
    async isOpen(call?: Call): Promise<boolean> {
      if (!shut && performance.now() >= openUntil) {
        asking ??= ask().finally(() => {
          asking = undefined;
        });
        await (call ? waitFor(asking, call) : asking);
      }
      return !shut;
    },
    shut() {
      shut = true;
    },
  };
}
