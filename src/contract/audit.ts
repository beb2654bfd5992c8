import type { Call } from './call.ts';
import type { ErrorCode } from './errors.ts';
import type { Within } from './record.ts';

/** The verbs of the protocol (SPEC, Capabilities). The list is closed. */
export const VERBS = ['add', 'search', 'get', 'update', 'delete', 'list', 'context', 'audit'] as const;
export type ProtocolVerb = (typeof VERBS)[number];

/** What an audit entry may record: the verbs, and the gateway's own calls. */
export const AUDIT_ACTIONS = [
  ...VERBS,
  'users',
  'stats',
  'map',
  'erase',
  'export',
  'import',
  'list_keys',
  'create_key',
  'revoke_key',
  'freeze',
  'unfreeze',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** One action of a caller, successful or not. Holds no contents and no queries. */
export interface AuditEntry {
  /** ISO 8601, UTC, milliseconds, `Z`. */
  readonly timestamp: string;
  /** `Caller.app`. */
  readonly app: string | null;
  readonly action: AuditAction;
  /**
   * Null unless the entry concerns a known user that the caller may access. An entry without a user is not readable by
   * the audit verb.
   */
  readonly user_id: string | null;
  readonly memory_id: string | null;
  /** The scope of the record or of the query. */
  readonly scope: string | null;
  readonly request_id: string;
  readonly outcome: 'ok' | ErrorCode;
}

/** A stored entry. Within one millisecond, later entries have a higher `seq`, an integer. */
export interface StoredEntry extends AuditEntry {
  readonly seq: number;
}

export interface AuditQuery {
  readonly user_id: string;
  readonly app?: string;
  /** `since` and `until` are inclusive. */
  readonly since?: string;
  readonly until?: string;
  /** Only entries older than this one. */
  readonly after?: Pick<StoredEntry, 'timestamp' | 'seq'>;
  /** Applies to the entry's scope. */
  readonly within: Within;
  readonly limit: number;
}

/**
 * The audit log of a provider. The provider writes the entries of memories that were added, updated, deleted, imported or erased itself, in
 * one transaction with the change. The gateway passes all other entries to `record`.
 */
export interface AuditLog {
  record(entries: readonly AuditEntry[], call: Call): Promise<void>;
  /** Newest first. */
  read(query: AuditQuery, call: Call): Promise<StoredEntry[]>;
}

export interface AuditOptions {
  /** Days until an entry is deleted; null: never. */
  readonly retention_days: number | null;
}

/** The entry of a change that has succeeded. `id` is null if it concerns all memories of the user. */
export const changeEntry = (
  action: AuditAction,
  { id, user_id, scope }: Pick<AuditEntry, 'scope'> & { readonly id: string | null; readonly user_id: string },
  { caller, requestId }: Call,
): AuditEntry => ({
  timestamp: new Date().toISOString(),
  app: caller.app,
  action,
  user_id,
  memory_id: id,
  scope,
  request_id: requestId,
  outcome: 'ok',
});
