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
  'versions',
  'restore',
  'purge',
  'erase',
  'rollback',
  'person_file',
  'retention',
  'export',
  'import',
  'changes',
  'list_keys',
  'create_key',
  'revoke_key',
  'embedding_usage',
  'list_webhooks',
  'create_webhook',
  'delete_webhook',
  'test_webhook',
  'resume_webhook',
  'rotate_webhook',
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
  /** True: memories were changed, so that the feed of changes has the entry too (`Provider.changes`). */
  readonly changed?: true;
  /**
   * Scopes without memories of the entry that had some before, at most `MAX_LEFT_SCOPES`: the old one of an update that moved it, those of
   * an erase.
   */
  readonly left_scopes?: readonly string[];
}

/** A stored entry. Within one millisecond, later entries have a higher `seq`, an integer. */
export interface StoredEntry extends Omit<AuditEntry, 'changed' | 'left_scopes'> {
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
  /**
   * `hash`: an erase replaces the user in the entries by `erasedName`, and removes their scopes, but for entries of erases: the feed of
   * changes has to name the user there. Default: `keep`.
   */
  readonly erased_users?: 'keep' | 'hash';
}

/** What was changed. `id` is null if it concerns all memories of the user. */
type Changed = Pick<AuditEntry, 'scope' | 'left_scopes'> & { readonly id: string | null; readonly user_id: string };

/** Most scopes that one entry names. An erase of more has several entries. */
export const MAX_LEFT_SCOPES = 100;

/** What an erase has changed, for one entry each: `scopes` are those of the memories that it deleted. */
export function erasedFrom(user_id: string, scopes: Iterable<string>): Changed[] {
  const left = [...scopes];
  const entries = Array.from({ length: Math.max(1, Math.ceil(left.length / MAX_LEFT_SCOPES)) });
  return entries.map((_, i) => ({
    id: null,
    user_id,
    scope: null,
    left_scopes: left.slice(i * MAX_LEFT_SCOPES, (i + 1) * MAX_LEFT_SCOPES),
  }));
}

/** The entry of a change that has succeeded. */
export const changeEntry = (action: AuditAction, changed: Changed, call: Call): AuditEntry => ({
  ...unchangedEntry(action, changed, call),
  changed: true,
  ...(changed.left_scopes && { left_scopes: changed.left_scopes }),
});

/** The entry of a change that has succeeded before, or that changed nothing. */
export const unchangedEntry = (
  action: AuditAction,
  { id, user_id, scope }: Omit<Changed, 'left_scopes'>,
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
