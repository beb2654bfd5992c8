import { backgroundCall, type Call, type KeyStore, type Log } from '#contract';
import { ANONYMOUS, type Authenticator } from '../core/grants.ts';
import type { ConfiguredKey } from './configured-keys.ts';
import { invalidCredential, KEY_PREFIX, missingCredential } from './credentials.ts';
import { openKeyRing } from './key-ring.ts';
import type { TokenOptions } from './tokens.ts';

export interface AuthenticatorOptions {
  readonly keys: readonly ConfiguredKey[];
  /** Stored keys, in addition; undefined: the provider stores none. */
  readonly store: KeyStore | undefined;
  /** Undefined: tokens are not accepted. */
  readonly jwt: TokenOptions | undefined;
  /** Whether a credential is required even while no key exists. */
  readonly required: boolean;
  readonly log: Log;
}

export interface GatewayAuthenticator extends Authenticator {
  /** Whether no credential is needed, because no key was ever created. Throws `provider_error` if the store fails. */
  isOpen(): Promise<boolean>;
  close(): Promise<void>;
}

/** How long the answer that no key exists is cached, in milliseconds: a first key takes effect after this at most. */
const OPEN_MS = 5_000;

/**
 * Authenticates callers by key or token (Decision 13). While no key exists, the gateway is open and ignores credentials,
 * because clients send dummies. An API key is verified even then: its holder relies on its limits, and a new key must work
 * at once. Once closed, the gateway never opens again.
 */
export async function openAuthenticator(options: AuthenticatorOptions): Promise<GatewayAuthenticator> {
  const { keys, store, jwt, log } = options;
  const ring = openKeyRing({ configured: keys, store, log });
  const tokens = jwt && (await import('./tokens.ts')).openTokens(jwt);
  const access = openAccess(options);
  return {
    async authenticate(credential, call) {
      if (credential?.startsWith(KEY_PREFIX)) {
        const principal = await ring.principal(credential, call);
        access.close();
        return principal;
      }
      if (await access.isOpen(call)) return ANONYMOUS;
      if (credential === undefined) throw missingCredential();
      if (!tokens) throw invalidCredential('it is not an API key, and tokens are not configured');
      return tokens.principal(credential, call);
    },
    isOpen: () => access.isOpen(),
    close: () => ring.close(),
  };
}

/** Whether callers need no credential. Once closed it stays closed. */
function openAccess({ keys, store, jwt, required }: AuthenticatorOptions) {
  let closed = required || keys.length > 0 || jwt !== undefined;
  let openUntil = store ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  let asking: Promise<void> | undefined;
  const ask = async () => {
    const askedAt = performance.now();
    if (await store?.hasAny(backgroundCall('keys'))) closed = true;
    openUntil = askedAt + OPEN_MS;
  };
  return {
    async isOpen(call?: Call): Promise<boolean> {
      if (!closed && performance.now() >= openUntil) {
        asking ??= ask().finally(() => {
          asking = undefined;
        });
        await (call?.unlessAborted(asking) ?? asking);
      }
      return !closed;
    },
    close() {
      closed = true;
    },
  };
}
