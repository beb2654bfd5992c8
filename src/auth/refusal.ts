import { OmpError } from '#contract';

/**
 * The one answer to every credential that is not good, whatever is wrong with it (SPEC, Errors). The reason is for the
 * log alone and must not quote the credential.
 */
export const refused = (reason: string): OmpError =>
  new OmpError('unauthorized', 'the API key or token is not valid', { cause: new Error(reason) });

export const missing = (): OmpError =>
  new OmpError('unauthorized', 'an API key is required, as "Authorization: Bearer <key>" or "X-API-Key: <key>"');
