/**
 * Requests and responses as they are on the wire. Responses of newer gateways may have further fields. Those that the OpenAPI document
 * describes are made of it.
 */

export type * from './wire-types.ts';

import type { AuditEntry, Memory } from './wire-types.ts';

export interface BatchError {
  code: string;
  message: string;
  type: string;
  provider?: string;
}

/** One memory of a batch: added, or the reason why not. */
export type BatchResult = { memory: Memory; error?: never } | { error: BatchError; memory?: never };

/** `unchanged`: it is stored already, as it is; `exists`: its id is, with other fields, or of another user. */
export type ImportResult =
  | { outcome: 'stored' | 'unchanged' | 'exists'; error?: never }
  | { error: BatchError; outcome?: never };

/** A line of the file of a person. A memory lacks the fields that are not set. */
export type PersonLine =
  | {
      type: 'person';
      user_id: string;
      made_at: string;
      format: number;
      /** `holds`: where a store is mounted; absent: the root store. */
      stores: { name: string; holds?: string }[];
      note: string;
    }
  | (Omit<Memory, 'user_id'> & { type: 'memory' | 'version'; version?: number; store: string })
  | (AuditEntry & { type: 'audit' })
  | { type: 'missing' | 'not_kept'; what: string; why: string }
  | { type: 'end'; memories: number; versions: number; audit_entries: number; complete: boolean };
