import { LRUCache } from 'lru-cache';
import type { Call, KeyStore, Log, StoredKey } from '#contract';
import { toGrants } from '../core/grants.ts';
import type { Principal } from '../core/principal.ts';
import { type ConfiguredKey, hashedKey } from './configured-keys.ts';
import { idOf, matchesHash, refused } from './credentials.ts';
import { ownCall, waitFor } from './waiting.ts';

/** The keys that are known here, configured or stored. */
export interface KeyRing {
  /** Who owns this key. Throws `unauthorized` when it is not good now. */
  principal(key: string, call: Call): Promise<Principal>;
  /** Notes the last uses. */
  close(): Promise<void>;
}

export interface KeyRingOptions {
  readonly configured: readonly ConfiguredKey[];
  readonly store: KeyStore | undefined;
  readonly log: Log;
}

/** A revoked key is refused at most this long after, on every replica. */
const REMEMBERED_MS = 5_000;
/** Ids asked for lately, those that name nothing among them. */
const MOST_REMEMBERED = 10_000;
const NOTE_USES_MS = 60_000;

interface Entry {
  readonly principal: Principal;
  readonly hash: string;
  /** Epoch milliseconds. */
  readonly expires: number;
  readonly revoked: boolean;
}

/** `entry` is there once the answer is; undefined also for an id that names nothing. */
interface LookUp {
  readonly answer: Promise<Entry | undefined>;
  entry?: Entry | undefined;
}

export function openKeyRing({ configured, store, log }: KeyRingOptions): KeyRing {
  const own = new Map(configured.map((key) => [hashedKey(key.key).id, fromConfiguration(key)]));
  const lookUps = new LRUCache<string, LookUp>({ max: MOST_REMEMBERED, ttl: REMEMBERED_MS });
  const uses = store && noteUses(store, log);

  /** The age of an answer counts from the question, so that no answer is older than promised. */
  const ask = (id: string, { find }: KeyStore): LookUp => {
    const answer = find(id, ownCall('keys')).then((stored) => stored && fromStore(stored));
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
      if (id === undefined) throw refused('the key is malformed');
      let entry = own.get(id);
      if (!entry && store) {
        const lookUp = lookUps.get(id) ?? ask(id, store);
        entry = lookUp.entry ?? (await waitFor(lookUp.answer, call));
      }
      if (!entry) throw refused('no key has this id');
      const trouble = troubleWith(entry, key);
      if (trouble !== undefined) throw refused(trouble);
      if (!own.has(id)) uses?.add(id);
      return entry.principal;
    },
    close: async () => uses?.close(),
  };
}

/** Asked at every use: a remembered key expires as well. */
function troubleWith({ hash, revoked, expires }: Entry, key: string): string | undefined {
  if (!matchesHash(key, hash)) return 'the secret of the key is wrong';
  if (revoked) return 'the key is revoked';
  return expires <= Date.now() ? 'the key has expired' : undefined;
}

const principalOf = (id: string, { name, users, grants }: Pick<StoredKey, 'name' | 'users' | 'grants'>): Principal => ({
  id: `key:${id}`,
  app: name,
  users,
  grants: toGrants(grants),
});

const toEpoch = (time: string | null): number => (time === null ? Number.POSITIVE_INFINITY : Date.parse(time));

function fromConfiguration({ name, key, users, grants, expires_at }: ConfiguredKey): Entry {
  const { id, hash } = hashedKey(key);
  const principal = principalOf(id, { name, users: users ?? null, grants });
  return { principal, hash, expires: toEpoch(expires_at ?? null), revoked: false };
}

function fromStore(stored: StoredKey): Entry {
  const { id, hash, expires_at, revoked_at } = stored;
  try {
    return { principal: principalOf(id, stored), hash, expires: toEpoch(expires_at), revoked: revoked_at !== null };
  } catch (cause) {
    // Not the caller's mistake, as the error of a wrong grant would say.
    throw new Error(`the stored key ${id} cannot be understood`, { cause });
  }
}

/** Tells the store in batches which keys were used. */
function noteUses(store: KeyStore, log: Log): { add(id: string): void; close(): Promise<void> } {
  let used = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const flush = async () => {
    clearTimeout(timer);
    timer = undefined;
    if (used.size === 0) return;
    const ids = [...used];
    used = new Set();
    try {
      await store.touch(ids, new Date().toISOString(), ownCall('keys'));
    } catch (error) {
      // Kept for the next time; a store that is gone for good loses no more than this.
      for (const id of ids) used.add(id);
      log.warn({ err: error }, 'the last use of API keys could not be noted');
    }
  };
  return {
    add(id) {
      used.add(id);
      timer ??= setTimeout(() => void flush(), NOTE_USES_MS).unref();
    },
    close: flush,
  };
}
