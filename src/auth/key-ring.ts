import { LRUCache } from 'lru-cache';
import { backgroundCall, type Call, type KeyStore, type Log, type StoredKey } from '#contract';
import type { Principal } from '../core/grants.ts';
import { toGrants } from '../core/grants.ts';
import { type ConfiguredKey, hashedKey } from './configured-keys.ts';
import { idOf, invalidCredential, matchesHash } from './credentials.ts';

/** Configured and stored keys. */
export interface KeyRing {
  /** The principal of a key. Throws `unauthorized` unless the key is valid now. */
  principal(key: string, call: Call): Promise<Principal>;
  /** Stores the last uses. */
  close(): Promise<void>;
}

export interface KeyRingOptions {
  readonly configured: readonly ConfiguredKey[];
  readonly store: KeyStore | undefined;
  readonly log: Log;
}

/** How long an answer of the store is cached, in milliseconds: every replica rejects a revoked key after this. */
const CACHE_MS = 5_000;
/** Number of cached ids, unknown ones included. */
const MAX_CACHED = 10_000;
/** How often last uses are stored, in milliseconds. */
const STORE_USES_MS = 60_000;

interface KeyEntry {
  readonly principal: Principal;
  readonly hash: string;
  /** Epoch milliseconds. */
  readonly expires: number;
  readonly revoked: boolean;
}

/** `entry` is set once the store has answered; it stays undefined for an unknown id. */
interface LookUp {
  readonly answer: Promise<KeyEntry | undefined>;
  entry?: KeyEntry | undefined;
}

export function openKeyRing({ configured: configuredKeys, store, log }: KeyRingOptions): KeyRing {
  const fromFile = new Map(configuredKeys.map((key) => [hashedKey(key.key).id, fromConfiguration(key)]));
  const lookUps = new LRUCache<string, LookUp>({ max: MAX_CACHED, ttl: CACHE_MS });
  const uses = store && recordUses(store, log);

  /** The answer's age counts from the request, so that none is older than `CACHE_MS`. */
  const ask = (id: string, { find }: KeyStore): LookUp => {
    const answer = find(id, backgroundCall('keys')).then((key) => key && fromStore(key));
    const lookUp: LookUp = { answer };
    lookUps.set(id, lookUp);
    answer.then(
      (entry) => {
        lookUp.entry = entry;
      },
      () => {
        if (lookUps.peek(id) === lookUp) lookUps.delete(id);
      },
    );
    return lookUp;
  };

  return {
    async principal(key, call) {
      const id = idOf(key);
      if (id === undefined) throw invalidCredential('the key is malformed');
      let entry = fromFile.get(id);
      if (!entry && store) {
        const lookUp = lookUps.get(id) ?? ask(id, store);
        entry = lookUp.entry ?? (await call.unlessAborted(lookUp.answer));
      }
      if (!entry) throw invalidCredential('no key has this id');
      const reason = rejectionOf(entry, key);
      if (reason !== undefined) throw invalidCredential(reason);
      if (!fromFile.has(id)) uses?.add(id);
      return entry.principal;
    },
    close: async () => uses?.close(),
  };
}

/** Checked at every use, because a cached key can expire. */
function rejectionOf({ hash, revoked, expires }: KeyEntry, key: string): string | undefined {
  if (!matchesHash(key, hash)) return 'the secret of the key is wrong';
  if (revoked) return 'the key is revoked';
  return expires <= Date.now() ? 'the key has expired' : undefined;
}

const principalOf = (
  id: string,
  { name, users, grants, untrusted }: Pick<StoredKey, 'name' | 'users' | 'grants' | 'untrusted'>,
): Principal => ({
  id: `key:${id}`,
  app: name,
  users,
  grants: toGrants(grants),
  ...(untrusted && { untrusted }),
});

const toEpoch = (time: string | null): number => (time === null ? Number.POSITIVE_INFINITY : Date.parse(time));

function fromConfiguration(configuredKey: ConfiguredKey): KeyEntry {
  const { name, key, users = null, grants, expires_at, untrusted } = configuredKey;
  const { id, hash } = hashedKey(key);
  const principal = principalOf(id, { name, users, grants, untrusted });
  return { principal, hash, expires: toEpoch(expires_at ?? null), revoked: false };
}

function fromStore(key: StoredKey): KeyEntry {
  const { id, hash, expires_at, revoked_at } = key;
  try {
    return { principal: principalOf(id, key), hash, expires: toEpoch(expires_at), revoked: revoked_at !== null };
  } catch (cause) {
    // A bug or a newer version of the gateway, not the caller's mistake.
    throw new Error(`the stored key ${id} is not valid`, { cause });
  }
}

/** Stores in batches which keys were used. */
function recordUses(store: KeyStore, log: Log): { add(id: string): void; close(): Promise<void> } {
  let usedIds = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const flush = async () => {
    clearTimeout(timer);
    timer = undefined;
    if (usedIds.size === 0) return;
    const ids = [...usedIds];
    usedIds = new Set();
    try {
      await store.touch({ ids, time: new Date().toISOString() }, backgroundCall('keys'));
    } catch (error) {
      // The next batch retries them.
      for (const id of ids) usedIds.add(id);
      log.warn({ err: error }, 'the last use of API keys could not be stored');
    }
  };
  return {
    add(id) {
      usedIds.add(id);
      timer ??= setTimeout(() => void flush(), STORE_USES_MS).unref();
    },
    close: flush,
  };
}
