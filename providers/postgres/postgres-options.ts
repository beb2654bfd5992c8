import { z } from 'zod';
import { Mapping } from './mapped/mapping.ts';

const milliseconds = z.int().min(1).max(3_600_000);

/** As `pg` reads it: without a host, a socket of this machine. */
const serverUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//)
  .refine((url) => URL.canParse(url) || URL.canParse(url.replace('@/', '@host/')));

/** The configuration takes its defaults and ranges from here. */
export const Options = z.strictObject({
  /** A server's connection string; without one the embedded Postgres is started in the data folder. */
  url: serverUrl.optional(),
  /** A streaming replica of the server, for searches and lists. */
  read_url: serverUrl.optional(),
  /** Schema that holds the gateway's tables; created if missing. */
  schema: z
    .string()
    .min(1)
    // Postgres cuts longer identifiers without an error.
    .refine((name) => Buffer.byteLength(name) <= 63 && !name.includes('\0'))
    .default('omp'),
  /** `citus`: the tables are distributed over the nodes of Citus. Once they are, the gateway sees it by itself. */
  distributed: z.enum(['off', 'citus']).default('off'),
  /** Pipelined connections to a server. The embedded engine has one session and gets one. */
  connections: z.int().min(1).max(100).default(4),
  /** `auto` uses named statements until a transaction pooler shows that it cannot carry them. */
  prepared_statements: z.enum(['auto', 'on', 'off']).default('auto'),
  connect_timeout_ms: milliseconds.default(5_000),
  /** Longest time that a statement is queued for a connection; unset: `connect_timeout_ms`. */
  acquire_timeout_ms: milliseconds.optional(),
  /** Statements that are queued at once, at most; more are rejected. */
  max_waiting: z.int().min(1).default(1_000),
  /** Longest time for one statement once it is sent; it is then cancelled. */
  query_timeout_ms: milliseconds.default(10_000),
  /** A user with more memories than this is searched through the vector index instead of by an exact scan. */
  large_user_rows: z.int().min(1).default(10_000),
  /** `async`: memories are stored at once and their vectors computed in the background. */
  ingestion: z.enum(['sync', 'async']).default('sync'),
  /** Days after `valid_to` until a memory is deleted; unset: never. */
  purge_expired_days: z.int().min(1).max(36_500).optional(),
  /** A table that another application fills. Unset: the gateway's tables. */
  mapping: Mapping.optional(),
});
export type Options = z.output<typeof Options>;
