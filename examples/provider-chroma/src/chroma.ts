import { ChromaClient, type Collection, type Metadata, type Where } from 'chromadb';
import { type Call, OmpError, type OmpErrorOptions } from 'omp-gateway/provider';
import type { Options } from './options.ts';

/** A record as Chroma returns it. What was not asked for is absent. */
export interface Row {
  readonly id: string;
  readonly document?: string | null | undefined;
  readonly metadata?: Metadata | null | undefined;
  readonly embedding?: readonly number[] | null | undefined;
  readonly distance?: number | null | undefined;
}

/** What a memory is read from; `ALL` with its vector. */
export const RECORD: Include = ['documents', 'metadatas'];
export const ALL: Include = [...RECORD, 'embeddings'];
export type Include = readonly ('documents' | 'metadatas' | 'embeddings')[];

/** Either `ids`, at least one, or a condition. */
interface GetQuery {
  readonly ids?: readonly string[];
  readonly where?: Where;
  readonly limit?: number;
  readonly offset?: number;
}

/** One collection. Every method throws an `OmpError`, and makes no request for a call that was aborted. */
export interface Store {
  /** In the order in which records were inserted, also with `ids`. With nothing to include it takes a fifth of the time. */
  get(query: GetQuery, include: Include, call: Call): Promise<Row[]>;
  /** The nearest first. */
  query(query: { vector: readonly number[]; where: Where; limit: number }, include: Include, call: Call): Promise<Row[]>;
  add(records: Records, call: Call): Promise<void>;
  /** Sets these metadata keys, and keeps the others. Does nothing, without an error, if there is no such record. */
  update(record: { id: string; metadata: Metadata; document?: string; embedding?: number[] }, call: Call): Promise<void>;
  /** The number of deleted records. */
  delete(where: Where, call: Call): Promise<number>;
  /** Records of all users. */
  count(call: Call): Promise<number>;
}

/** One column for each part, as Chroma takes them. */
export interface Records {
  readonly ids: string[];
  readonly embeddings: number[][];
  readonly documents: string[];
  readonly metadatas: Metadata[];
}

export function createClient({ url, token, tenant, database }: Options): ChromaClient {
  const { protocol, hostname, port } = new URL(url);
  const ssl = protocol === 'https:';
  return new ChromaClient({
    host: hostname,
    port: Number(port || (ssl ? 443 : 80)),
    ssl,
    tenant,
    database,
    ...(token !== undefined && { headers: { 'x-chroma-token': token } }),
  });
}

/** The client takes no signal: the gateway stops waiting for an aborted call, and no further request is made for it. */
export async function ask<Result>(call: Call, request: () => Promise<Result>): Promise<Result> {
  call.throwIfAborted();
  try {
    return await request();
  } catch (error) {
    throw toOmpError(error);
  }
}

export const createStore = (collection: Collection): Store => ({
  get: async ({ ids, ...query }, include, call) =>
    (await ask(call, () => collection.get({ ...query, ...(ids && { ids: [...ids] }), include: [...include] }))).rows(),
  async query({ vector, where, limit }, include, call) {
    const query = { queryEmbeddings: [[...vector]], nResults: limit, where, include: [...include, 'distances' as const] };
    return (await ask(call, () => collection.query(query))).rows()[0] ?? [];
  },
  add: (records, call) => ask(call, () => collection.add(records)),
  update: ({ id, metadata, document, embedding }, call) =>
    ask(call, () =>
      collection.update({
        ids: [id],
        metadatas: [metadata],
        ...(document !== undefined && embedding && { documents: [document], embeddings: [embedding] }),
      }),
    ),
  delete: async (where, call) => (await ask(call, () => collection.delete({ where }))).deleted ?? 0,
  count: (call) => ask(call, () => collection.count()),
});

/** All of these must hold. Chroma takes `$and` only with two or more. */
export function all(conditions: readonly (Where | undefined)[]): Where {
  const given = conditions.filter((condition) => condition !== undefined);
  return given.length === 1 ? (given[0] as Where) : { $and: given };
}

type Meaning = OmpErrorOptions & { readonly message: string; readonly code?: 'rate_limited' };

/**
 * What the errors of the client mean. A request whose connection broke may have been done, so only reads are repeated; the client does not
 * tell that from a server that was never reached. An answer of any kind shows that the server is not down, except for 5xx.
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  ChromaConnectionError: { message: 'Chroma cannot be reached', retry: 'reads', down: true },
  ChromaServerError: { message: 'Chroma failed', retry: 'reads', down: true },
  ChromaRateLimitError: {
    code: 'rate_limited',
    message: 'Chroma accepts no more requests at the moment',
    retry: 'safe',
  },
  ChromaQuotaExceededError: { message: 'a quota of the account at Chroma is used up' },
  ChromaAuthError: { message: 'Chroma rejected the token of the gateway' },
  ChromaForbiddenError: { message: 'Chroma does not allow this to the gateway' },
  ChromaNotFoundError: { message: 'the collection is not there any more; a restart of the gateway makes a new one' },
};

function toOmpError(error: unknown): OmpError {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  // The client turns every unknown status into an error of the server.
  if (name === 'ChromaServerError' && message.startsWith('413')) {
    return new OmpError('payload_too_large', 'the memory is too large for a request to Chroma');
  }
  const { code = 'provider_error', ...meaning } = MEANINGS[name] ?? { message: 'Chroma rejected a request of the gateway' };
  // The cause is logged, and the text of any other error may quote the request.
  return new OmpError(code, meaning.message, { ...meaning, cause: name in MEANINGS ? error : new Error(name) });
}
