import { OmpError, providerError } from '#contract';

export const PROVIDER = 'postgres';

/** What a client is told, by SQLSTATE or its class or by the system's error code. The driver's own text stays in the log. */
const MESSAGES: Record<string, string> = {
  '08': 'the database cannot be reached',
  '28': 'the database refused the credentials of the gateway',
  '3D': 'the database does not exist',
  '42703': 'the table has changed since the gateway started, maybe embedded anew; restart the gateway',
  '42P01': 'the table is gone, or has changed since the gateway started; restart the gateway',
  '42501': 'the gateway lacks a privilege in the database',
  '53100': 'the database is out of disk space',
  '53': 'the database is out of resources',
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

export function toOmpError(cause: unknown): OmpError {
  if (cause instanceof OmpError) return cause;
  const code = codeOf(cause) ?? '';
  return providerError(PROVIDER, MESSAGES[code] ?? MESSAGES[code.slice(0, 2)] ?? 'the database failed', cause);
}

/** The database ended the connection, or it was ended because it does not answer any more. */
export const lostConnection = (cause: unknown): OmpError => withCode(cause, 'the database closed the connection');

export const unreachable = (cause: unknown): OmpError => withCode(cause, 'the database cannot be reached');

export const tooBusy = (): OmpError => providerError(PROVIDER, 'all connections to the database are busy');

export const tooLong = (): OmpError => providerError(PROVIDER, 'the database took too long');

/** Errors that the driver makes up by itself have no code. */
const withCode = (cause: unknown, otherwise: string): OmpError =>
  codeOf(cause) === undefined ? providerError(PROVIDER, otherwise, cause) : toOmpError(cause);

export const codeOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/**
 * A transaction pooler hands each statement to whichever session is free, where the prepared one is missing (26000) or
 * was prepared by somebody else (42P05); a migration by another replica outdates a plan (0A000). All three are raised
 * before anything runs, so the statement can be sent again without a name.
 */
export const isPreparedStatementTrouble = (error: unknown): boolean =>
  ['26000', '42P05', '0A000'].includes(codeOf(error) ?? '');

/** Told of a statement that was cancelled by whomever, which then has not acted. */
export const isCancelled = (error: unknown): boolean => codeOf(error) === '57014';
