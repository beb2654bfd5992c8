import { z } from 'zod';
import { Mapping } from './mapped/mapping.ts';

export const Options = z.strictObject({
  /** Connection string of a server. Unset: the embedded Postgres in the data folder. */
  url: z.string().optional(),
  /** Schema of the gateway's tables; created if missing. */
  schema: z.string().min(1).default('omp'),
  /** Pipelined connections to a server. The embedded engine has one session, so it gets one. */
  connections: z.int().min(1).default(4),
  /** `auto`: named statements, until a transaction pooler turns out not to support them. */
  prepared_statements: z.enum(['auto', 'on', 'off']).default('auto'),
  connect_timeout_ms: z.int().min(1).default(5_000),
  /** Longest time that a statement may be queued. */
  acquire_timeout_ms: z.int().min(1).default(5_000),
  /** Length of the queue of statements; more are rejected with `rate_limited`. */
  max_waiting: z.int().min(1).default(1_000),
  /** Longest time that one statement may run before it is cancelled. */
  query_timeout_ms: z.int().min(1).default(10_000),
  /** Users with more memories than this are searched through the vector index instead of by an exact scan. */
  large_user_rows: z.int().min(1).default(10_000),
  /** `async`: memories are stored at once and their vectors computed in the background. */
  ingestion: z.enum(['sync', 'async']).default('sync'),
  /** A table that another application fills. Unset: the gateway's tables. */
  mapping: Mapping.optional(),
});
export type Options = z.output<typeof Options>;
