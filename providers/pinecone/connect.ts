import { type Index, Pinecone, type RecordMetadata } from '@pinecone-database/pinecone';
import { apiKeyOf, indexAddress, refuseDebugOutput } from './address.ts';
import { idPage, matchesOf, noRecords, nothingThere, recordPage, recordsOf, statsOf, writtenLsn } from './answers.ts';
import { type Ask, createAsk } from './ask.ts';
import { deleteChunks, fetchChunks, forEachChunk, holdable } from './chunks.ts';
import { fetchApi } from './exchange.ts';
import { type Filter, MAX_LISTED, type Metadata, type Service } from './service.ts';
import { createTurns } from './turns.ts';

export interface ConnectOptions {
  readonly api_key: string;
  readonly index_host: string;
  /** Longest wait for one answer, in milliseconds. */
  readonly timeout_ms: number;
  /** Requests at once, and those that wait for their turn, at most; by default any number. */
  readonly concurrency?: number;
  readonly max_waiting?: number;
}

/**
 * The index behind the official SDK. Nothing is asked before the first request, and never the control plane.
 * Throws a plain `Error` where the key or the address cannot be one.
 */
export function connect({ api_key, index_host, timeout_ms, ...limits }: ConnectOptions): Service {
  const { concurrency = Number.POSITIVE_INFINITY, max_waiting = Number.POSITIVE_INFINITY } = limits;
  refuseDebugOutput();
  const pinecone = new Pinecone({ apiKey: apiKeyOf(api_key), fetchApi, maxRetries: 0 });
  const turns = createTurns(concurrency, max_waiting);
  const requests = requestsOf(pinecone.index({ host: indexAddress(index_host) }), createAsk(timeout_ms, turns));
  return { ...requests, waiting: turns.waiting };
}

const requestsOf = (index: Index, ask: Ask): Omit<Service, 'waiting'> => ({
  upsert(namespace, { id, values, metadata }, call) {
    const send = () =>
      index.upsert({ namespace, records: [{ id, values: [...values], metadata: writable(metadata) }] });
    // Carried out late, it would undo a patch, or bring back what was deleted since.
    return ask({ send, read: writtenLsn, repeatable: false }, call);
  },

  update(namespace, { id, values, metadata }, call) {
    const send = () =>
      index.update({ namespace, id, metadata: writable(metadata), ...(values && { values: [...values] }) });
    // Carried out late, it would undo what others changed since.
    return ask({ send, read: writtenLsn, repeatable: false, otherwise: nothingThere }, call);
  },

  async remove(namespace, ids, call) {
    const lsns = await forEachChunk(deleteChunks(holdable(ids)), (chunk) => {
      const send = () => index.deleteMany({ namespace, ids: chunk });
      return ask({ send, read: writtenLsn, repeatable: true, otherwise: nothingThere }, call);
    });
    const told = lsns.filter((lsn) => lsn !== undefined);
    return told.length > 0 ? Math.max(...told) : undefined;
  },

  async fetch(namespace, ids, call) {
    const found = await forEachChunk(fetchChunks(namespace, holdable(ids)), (chunk) => {
      const send = () => index.fetch({ namespace, ids: chunk });
      return ask({ send, read: recordsOf, repeatable: true }, call);
    });
    return new Map(found.flat().map((record) => [record.id, record]));
  },

  query(namespace, { vector, topK, filter, includeMetadata }, call) {
    const send = () => index.query({ namespace, vector: [...vector], topK, filter: binding(filter), includeMetadata });
    return ask({ send, read: matchesOf, repeatable: true }, call);
  },

  list(namespace, { prefix, limit, token }, call) {
    const page = { limit: Math.min(limit, MAX_LISTED), ...(token !== undefined && { paginationToken: token }) };
    const send = () => index.listPaginated({ namespace, prefix, ...page });
    return ask({ send, read: idPage, repeatable: true }, call);
  },

  fetchByMetadata(namespace, { filter, limit, token }, call) {
    const page = { limit, ...(token !== undefined && { paginationToken: token }) };
    const send = () => index.fetchByMetadata({ namespace, filter: binding(filter), ...page });
    return ask({ send, read: recordPage, repeatable: true, otherwise: noRecords }, call);
  },

  stats: (call) => ask({ send: () => index.describeIndexStats(), read: statsOf, repeatable: true }, call),
});

/** As the SDK has it, which writes to it no more than we do. */
const writable = (metadata: Metadata): RecordMetadata => metadata as RecordMetadata;

/** Without a condition a filter would let everybody's records through. */
function binding(filter: Filter): Filter {
  if (Object.keys(filter).length === 0) throw new TypeError('a filter without a condition');
  return filter;
}
