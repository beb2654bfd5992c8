import type { Call } from './call.ts';
import type { ErrorCode } from './errors.ts';
import type { Within } from './record.ts';

/** The verbs of the protocol (SPEC, Capabilities). The list is closed. */
export const VERBS = ['add', 'search', 'get', 'update', 'delete', 'list', 'context', 'audit'] as const;
export type Verb = (typeof VERBS)[number];

/** One thing somebody did or tried. Contents and queries never enter. */
export interface AuditEntry {
  /** ISO 8601, UTC, milliseconds, `Z`. */
  readonly timestamp: string;
  /** `Caller.app`. */
  readonly app: string | null;
  readonly action: Verb;
  /** Null where no user within the caller's reach is known to be concerned; nobody reads such an entry by user. */
  readonly user_id: string | null;
  readonly memory_id: string | null;
  /** The record's scope, or the one asked for. */
  readonly scope: string | null;
  readonly request_id: string;
  readonly outcome: 'ok' | ErrorCode;
}

/** An entry as it was kept. Later entries of one millisecond have a higher `seq`, a whole number. */
export interface KeptEntry extends AuditEntry {
  readonly seq: number;
}

export interface AuditQuery {
  readonly user_id: string;
  readonly app?: string;
  /** Both inclusive. */
  readonly since?: string;
  readonly until?: string;
  /** Only entries that are older than this one. */
  readonly after?: Pick<KeptEntry, 'timestamp' | 'seq'>;
  /** Over the entry's scope. */
  readonly within: Within;
  readonly limit: number;
}

/**
 * The audit log of a provider. Successful adds, updates and deletes are written by the provider itself, together with
 * the change: both or neither are kept. Everything else is handed to `record`.
 */
export interface AuditLog {
  record(entries: readonly AuditEntry[], call: Call): Promise<void>;
  /** Newest first. */
  read(query: AuditQuery, call: Call): Promise<KeptEntry[]>;
}

export interface AuditOptions {
  /** Days an entry is kept; null: for ever. */
  readonly retention_days: number | null;
}
