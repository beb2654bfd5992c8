import { z } from 'zod';
import { Mapping } from './mapped/mapping.ts';

export const Options = z.strictObject({
  /** A server's connection string; without one the embedded Postgres is started in the data folder. */
  url: z.string().optional(),
  /** Schema that holds the gateway's tables; made when missing. */
  schema: z.string().min(1).default('omp'),
  /** Pipelined connections to a server. The embedded engine has one session and gets one. */
  connections: z.int().min(1).default(4),
  /** `auto` uses named statements until a transaction pooler shows that it cannot carry them. */
  prepared_statements: z.enum(['auto', 'on', 'off']).default('auto'),
  connect_timeout_ms: z.int().min(1).default(5_000),
  /** Longest wait of a statement for its turn on a connection. */
  acquire_timeout_ms: z.int().min(1).default(5_000),
  /** Statements that wait for their turn, at most; what comes on top is refused. */
  max_waiting: z.int().min(1).default(1_000),
  /** Longest time for one statement once it is its turn; it is then cancelled. */
  query_timeout_ms: z.int().min(1).default(10_000),
  /** A user with more memories than this is searched through the vector index instead of by an exact scan. */
  large_user_rows: z.int().min(1).default(10_000),
  /** `async`: memories are stored at once, and their vectors are computed in the background. */
  ingestion: z.enum(['sync', 'async']).default('sync'),
  /** A table that somebody else fills; unset: tables of ours. */
  mapping: Mapping.optional(),
});
export type Options = z.output<typeof Options>;
