import type { Call } from './call.ts';
import type { ErrorCode } from './errors.ts';
import type { Within } from './scope.ts';

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
  /** Null where the owner is not known: an id that names nothing within the caller's reach. */
  readonly user_id: string | null;
  readonly memory_id: string | null;
  /** The record's scope, or the one asked for. */
  readonly scope: string | null;
  readonly request_id: string;
  readonly outcome: 'ok' | ErrorCode;
}

export interface AuditQuery {
  readonly user_id: string;
  readonly app?: string;
  /** Inclusive. */
  readonly since?: string;
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
  read(query: AuditQuery, call: Call): Promise<AuditEntry[]>;
}

export interface AuditOptions {
  /** Days an entry is kept; null: for ever. */
  readonly retention_days: number | null;
}
