import type { Call } from './call.ts';

/** An API key as it is kept: never the secret itself. */
export interface StoredKey {
  /** The public part of the key, unique; looked up by this. */
  readonly id: string;
  /** Unique among all keys, revoked ones included. */
  readonly name: string;
  /** SHA-256 of the whole key, lower-case hexadecimal. */
  readonly hash: string;
  /** The only users it may touch; null: all. */
  readonly users: readonly string[] | null;
  /** `<action>:<scope glob>`. */
  readonly grants: readonly string[];
  /** All times ISO 8601, UTC, milliseconds, `Z`. */
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  /** To within a minute or so; null: never used. */
  readonly last_used_at: string | null;
}

export type NewKey = Omit<StoredKey, 'created_at' | 'revoked_at' | 'last_used_at'>;

export interface KeyStore {
  find(id: string, call: Call): Promise<StoredKey | undefined>;
  /** Whether there ever was a key, revoked and expired ones included: from then on the gateway is closed. */
  hasAny(call: Call): Promise<boolean>;
  /** Newest first. */
  list(call: Call): Promise<StoredKey[]>;
  /** Throws `invalid_request` when the name or the id is taken. */
  create(key: NewKey, call: Call): Promise<StoredKey>;
  /** By name or id; undefined when there is none. A key already revoked keeps its time. */
  revoke(nameOrId: string, call: Call): Promise<StoredKey | undefined>;
  /** Notes that these were used at `time`; never sets a time back. */
  touch(ids: readonly string[], time: string, call: Call): Promise<void>;
  close(): Promise<void>;
}
