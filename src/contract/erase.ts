/** How much a store has of a user, by kind. Absent: it has no such kind. */
export interface Holdings {
  readonly memories: number;
  /** Of the memories. */
  readonly vectors?: number;
  readonly versions?: number;
  /** Entries of the ingestion queue. */
  readonly queued?: number;
  /** Idempotency keys whose requests added memories of the user. */
  readonly idempotency_keys?: number;
  /** Counts for the limits of the user. */
  readonly usage_counts?: number;
  /** Entries of the audit log that name the user. */
  readonly audit_entries?: number;
  /** Notes that the user had many memories: the id alone. */
  readonly large_user_notes?: number;
}

export interface EraseRequest {
  readonly user_id: string;
}
