import { OmpError, providerError } from '#contract';

export const PROVIDER = 'postgres';

/** What a client is told, by SQLSTATE or its class or by the system's error code. The driver's own text stays in the log. */
const MESSAGES: Record<string, string> = {
  '08': 'the database cannot be reached',
  '28': 'the database refused the credentials of the gateway',
  '3D': 'the database does not exist',
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
