import type { AuditAction, AuditEntry } from './audit.ts';
import type { Within } from './record.ts';

/** A change of memories: an entry of the audit log. */
export interface Change {
  /** The position in the feed after this change. */
  readonly cursor: string;
  /** Identifies the change, however the feed is read. (On Citus a cursor depends on what was read before.) */
  readonly key: string;
  readonly action: AuditAction;
  /** Null: it concerns all memories of the user. */
  readonly id: string | null;
  readonly user_id: string;
  readonly scope: string | null;
  /** `AuditEntry.left_scopes`. */
  readonly left_scopes: readonly string[];
  /** ISO 8601, UTC, milliseconds, `Z`. */
  readonly at: string;
  /** `Caller.app`. */
  readonly caller: AuditEntry['app'];
}

/** Which changes: a change matches if its scope or one of `left_scopes` does. */
export interface ChangeFilter {
  /** The user must be one of these; null: any user. */
  readonly users: readonly string[] | null;
  readonly within: Within;
  /** Glob over the scope. */
  readonly scope?: string | undefined;
}

export interface ChangesQuery extends ChangeFilter {
  /** A cursor; `now`: the end of the feed; undefined: its beginning. */
  readonly after?: string | undefined;
  readonly limit: number;
  /**
   * `first`: of the left scopes of a change, the caller needs the first that matches, and none if every scope does. The others may be
   * left out. Undefined: it needs all.
   */
  readonly left_scopes?: 'first' | undefined;
}

/** May be shorter than the limit, even empty, although there are more changes. */
export interface ChangePart {
  readonly changes: readonly Change[];
  /** The position after everything that this part looked at. */
  readonly next: string;
  /** Whether there are more changes that could match. */
  readonly more: boolean;
}
