import type { Call } from './call.ts';

/** A stored API key, without the secret. */
export interface StoredKey {
  /** The public part of the key, unique; keys are looked up by it. */
  readonly id: string;
  /** Unique among all keys, revoked ones included. */
  readonly name: string;
  /** SHA-256 of the whole key, lower-case hexadecimal. */
  readonly hash: string;
  /** Users that the key may access; null: all. */
  readonly users: readonly string[] | null;
  /** `<action>:<scope glob>`. */
  readonly grants: readonly string[];
  /** Whether what it writes is marked as untrusted (Decision 54). Absent: no. */
  readonly untrusted?: boolean | undefined;
  /** All times ISO 8601, UTC, milliseconds, `Z`. */
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  /** Accurate to about a minute; null: never used. */
  readonly last_used_at: string | null;
}

export type NewKey = Omit<StoredKey, 'created_at' | 'revoked_at' | 'last_used_at'>;

export interface KeyListQuery {
  /** The id of the last key of the page before. */
  readonly after?: string | undefined;
  /** Undefined: all. */
  readonly limit?: number | undefined;
}

export interface KeyStore {
  find(id: string, call: Call): Promise<StoredKey | undefined>;
  /** Whether any key was ever created, including revoked and expired ones. If so, requests need a credential. */
  hasAny(call: Call): Promise<boolean>;
  /** Newest first. */
  list(query: KeyListQuery, call: Call): Promise<StoredKey[]>;
  /** Throws `invalid_request` if the name or the id exists. */
  create(key: NewKey, call: Call): Promise<StoredKey>;
  /** Revokes a key by name or id; undefined if there is none. A revoked key keeps its time of revocation. */
  revoke(nameOrId: string, call: Call): Promise<StoredKey | undefined>;
  /** Stores `time` as the last use, unless a later one is stored. */
  touch(use: { readonly ids: readonly string[]; readonly time: string }, call: Call): Promise<void>;
  close(): Promise<void>;
}
