import pg from 'pg';
import { OmpError, type OmpErrorOptions, providerError, storeFrozen } from '#provider';

export const PROVIDER = 'postgres';

/** Public messages, by SQLSTATE, its class, or the system's error code. The server's own text reaches neither clients nor the log. */
const MESSAGES: Record<string, string> = {
  '08': 'the database cannot be reached',
  '08006': 'a node of the database cannot be reached',
  '25006':
    'the database is read-only: it is a standby, or default_transaction_read_only is on; set DATABASE_URL to the primary, or turn that off',
  '28': 'the database rejected the credentials of the gateway',
  '3D': 'the database does not exist',
  '42703': 'the table has changed since the gateway started, maybe by a re-embed; restart the gateway',
  '42P01': 'the table does not exist, or has changed since the gateway started; restart the gateway',
  '42501': 'the gateway lacks a privilege in the database; "omp-gateway doctor" prints the grant that helps',
  '53100': 'the database is out of disk space',
  '53': 'the database is out of resources',
  '55P03': 'a change is under way that takes long; try again later',
  '57014': 'the database took too long',
  '57': 'the database is shutting down or starting up',
  '58': 'the database reported a system error',
  EAI_AGAIN: 'the database cannot be reached',
  ECONNREFUSED: 'the database cannot be reached',
  ECONNRESET: 'the database closed the connection',
  EHOSTUNREACH: 'the database cannot be reached',
  ENETUNREACH: 'the database cannot be reached',
  ENOENT: 'the database cannot be reached',
  ENOTFOUND: 'the database cannot be reached',
  EPIPE: 'the database closed the connection',
  ETIMEDOUT: 'the database cannot be reached',
};

type RetryFacts = Pick<OmpErrorOptions, 'retry' | 'down'>;

/** The server did not receive the statement. */
const NEVER_SENT: RetryFacts = { retry: 'safe', down: true };
/** The statement may have run. */
const CUT_OFF: RetryFacts = { retry: 'reads', down: true };

/**
 * Retry and circuit breaker facts, by the same codes. Errors without an entry are answers: the server works and would answer
 * the same again. An ended session (57P01) says nothing about the server; the next connection attempt finds out.
 */
const FACTS: Record<string, RetryFacts> = {
  '08': CUT_OFF,
  // The server answers that it cannot reach a node of Citus. Others serve the data of other users.
  '08006': { retry: 'reads' },
  // Rolled back because of a conflict with another transaction.
  '40001': { retry: 'safe' },
  '40P01': { retry: 'safe' },
  '53300': NEVER_SENT,
  '57P01': { retry: 'reads' },
  '57P02': { retry: 'reads' },
  '57P03': NEVER_SENT,
  '57P05': { retry: 'reads' },
  EAI_AGAIN: NEVER_SENT,
  ECONNREFUSED: NEVER_SENT,
  ECONNRESET: CUT_OFF,
  EHOSTUNREACH: NEVER_SENT,
  ENETUNREACH: NEVER_SENT,
  ENOENT: NEVER_SENT,
  ENOTFOUND: NEVER_SENT,
  EPIPE: CUT_OFF,
  ETIMEDOUT: CUT_OFF,
};

/** Classes of errors with which a server rejects a session. A retry would be rejected too. */
const SESSION_REJECTED = ['28', '3D'];

const byCode = <Value>(table: Record<string, Value>, code: string): Value | undefined =>
  table[code] ?? table[code.slice(0, 2)];

const failure = (message: string, facts: RetryFacts | undefined, cause?: unknown): OmpError =>
  new OmpError('provider_error', message, { provider: PROVIDER, cause: withoutTexts(cause), ...facts });

/** Source files of the server that check constraints. Other errors may carry any names: a trigger can raise what it likes. */
const CONSTRAINT_CHECKS = /^(?:execIndexing|execMain|nbtinsert|ri_triggers)\.c$/;

/**
 * The part of a server error that may be logged: SQLSTATE, routine, and the violated constraint. Its texts (message, detail,
 * hint, where) may quote rows, and a trigger can raise any text; the server's own log has them.
 */
function withoutTexts(cause: unknown): unknown {
  if (!(cause instanceof pg.DatabaseError)) return cause;
  const { code, severity, routine, file = '', schema, table, column, constraint } = cause;
  const names = CONSTRAINT_CHECKS.test(file) ? { schema, table, column, constraint } : {};
  const known = Object.entries({ routine, ...names }).flatMap(([what, name]) => (name ? [`${what} ${name}`] : []));
  const message = `SQLSTATE ${code} (${known.join(', ')}); the log of the server has the text`;
  return Object.assign(new Error(message), { code, severity, routine, ...names });
}

/** Raised by the trigger of a frozen store. */
export const FROZEN = 'OMPFZ';

/** When the store was frozen, from the error of the trigger. */
function frozenSince(cause: unknown): string | undefined {
  try {
    return JSON.parse((cause as pg.DatabaseError).detail ?? '').since;
  } catch {
    return undefined;
  }
}

export function toOmpError(cause: unknown): OmpError {
  if (cause instanceof OmpError) return cause;
  // The reason of an `AbortSignal.timeout`.
  if (cause instanceof Error && cause.name === 'TimeoutError') return tooLong(cause);
  const code = codeOf(cause) ?? '';
  if (code === FROZEN) return storeFrozen(PROVIDER, frozenSince(cause));
  return failure(byCode(MESSAGES, code) ?? 'the database failed', byCode(FACTS, code), cause);
}

/** Every change would fail with 25006. */
export const readOnly = (): OmpError =>
  new OmpError('provider_error', MESSAGES['25006'] as string, { provider: PROVIDER, frozen: true });

/** The database closed the connection, or it was closed because the database does not answer. What was sent may have run. */
export const lostConnection = (cause: unknown): OmpError =>
  failure(messageOf(cause, 'the database closed the connection'), CUT_OFF, cause);

/** The engine was restarted because of another statement. What was sent may have run. */
export const restarted = (): OmpError =>
  failure('the database was restarted to end a statement that took too long', { retry: 'reads' });

/** No connection could be opened: nothing was sent. */
export const unreachable = (cause: unknown): OmpError => {
  const rejected = SESSION_REJECTED.includes((codeOf(cause) ?? '').slice(0, 2));
  return failure(messageOf(cause, 'the database cannot be reached'), rejected ? { down: true } : NEVER_SENT, cause);
};

const overloaded = (what: string): OmpError =>
  new OmpError('rate_limited', `${what}; retry in 1 s`, { provider: PROVIDER, retryAfter: 1 });

/** The deadline in the queue has passed: the statement was not sent. Sent again at once it would only wait longer. */
export const tooBusy = (): OmpError => overloaded('all connections to the database are busy');

export const queueFull = (): OmpError => overloaded('too many statements wait for the database');

/** The deadline has passed behind other statements of the connection. */
export const stuck = (): OmpError =>
  providerError(PROVIDER, 'the database is busy with earlier statements; this one may still run');

export const tooLong = (cause?: unknown): OmpError =>
  failure('the database took too long', { down: 'suspected' }, cause);

/** Errors that the driver raises by itself have no code. */
const messageOf = (cause: unknown, otherwise: string): string =>
  codeOf(cause) === undefined ? otherwise : toOmpError(cause).message;

export const codeOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/**
 * A transaction pooler hands each statement to any free session. There the prepared statement may be missing (26000) or
 * belong to another client (42P05). A migration by another replica outdates a plan (0A000). All three are raised before the
 * statement runs, so it can be sent again without a name.
 */
export const isPreparedStatementTrouble = (error: unknown): boolean =>
  ['26000', '42P05', '0A000'].includes(codeOf(error) ?? '');

/** The statement was cancelled and had no effect. */
export const isCancelled = (error: unknown): boolean => codeOf(error) === '57014';
