import { ChromaClient, type Collection, type QueryRowResult, type Where } from 'chromadb';
import { type Call, OmpError, type OmpErrorOptions } from 'omp-gateway/provider';
import type { Options } from './options.ts';

/** A record as Chroma returns it. What was not asked for is undefined. */
export type Row = QueryRowResult;

type Include = ('documents' | 'metadatas' | 'embeddings')[];
/** What a memory is read from. */
export const RECORD: Include = ['documents', 'metadatas'];

export function createClient({ url, token = '' }: Options): ChromaClient {
  const { protocol, hostname, port } = new URL(url);
  const ssl = protocol === 'https:';
  const headers = { 'x-chroma-token': token };
  return new ChromaClient({ host: hostname, port: Number(port || (ssl ? 443 : 80)), ssl, ...(token && { headers }) });
}

/**
 * Makes a request. Every error becomes an `OmpError`. The client takes no signal: the gateway stops waiting when a call is aborted, and here
 * no further request is made for it.
 */
export async function ask<Result>(call: Call, request: () => Promise<Result>): Promise<Result> {
  call.throwIfAborted();
  try {
    return await request();
  } catch (error) {
    throw toOmpError(error);
  }
}

/** Records by id or by a condition: in the order of their insertion, whatever the order of the ids. */
export const getRows = async (
  collection: Collection,
  query: { readonly ids?: string[]; readonly where?: Where; readonly limit?: number; readonly offset?: number },
  include: Include,
  call: Call,
): Promise<Row[]> => (await ask(call, () => collection.get({ ...query, include }))).rows();

/** All of these must hold. Chroma takes `$and` only with two or more. */
export function all(conditions: readonly (Where | undefined)[]): Where {
  const given = conditions.filter((condition) => condition !== undefined);
  return given.length === 1 ? (given[0] as Where) : { $and: given };
}

type Meaning = OmpErrorOptions & { readonly message: string; readonly code?: 'rate_limited' };

/**
 * What the errors of the client mean, by name. A request whose connection broke may have been done, so only reads are repeated. The client
 * does not tell it from one that never reached the server.
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  ChromaConnectionError: { message: 'Chroma cannot be reached', retry: 'reads', down: true },
  ChromaServerError: { message: 'Chroma failed', retry: 'reads', down: true },
  ChromaRateLimitError: { message: 'Chroma accepts no more requests now', code: 'rate_limited', retry: 'safe' },
  ChromaQuotaExceededError: { message: 'a quota of the account at Chroma is used up' },
  ChromaAuthError: { message: 'Chroma rejected the token of the gateway' },
  ChromaForbiddenError: { message: 'Chroma does not allow this to the gateway' },
  ChromaNotFoundError: { message: 'Chroma has no such collection' },
};

function toOmpError(error: unknown): OmpError {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  // The client makes an error of the server of every status that it does not know.
  if (name === 'ChromaServerError' && message.startsWith('413')) {
    return new OmpError('payload_too_large', 'this is too large for one request to Chroma');
  }
  const { code = 'provider_error', ...meaning } = MEANINGS[name] ?? { message: 'Chroma rejected the request' };
  // The cause is logged. The text of any other error may quote the request, which nobody may log.
  return new OmpError(code, meaning.message, { ...meaning, cause: name in MEANINGS ? error : new Error(name) });
}
