import { type Call, type ExportPart, type ExportQuery, OmpError, providerError } from '#provider';
import { MAX_LISTED } from '../client/client.ts';
import { PROVIDER } from '../client/pinecone-errors.ts';
import { userFilter } from '../filter.ts';
import { largestPage, type RateLimit, RECORD_BYTES } from './mapped-list.ts';
import type { Find, MappedIndex } from './mapped-record.ts';

type Export = (query: ExportQuery, call: Call) => Promise<ExportPart>;

/**
 * Page after page of the ids in the namespace, then their records. The ids of one user come by a request by metadata; where the index has
 * none, all ids are read.
 */
export function createMappedExport(
  { service, namespace, fields, dimensions }: MappedIndex,
  find: Find,
  /** For requests by metadata; undefined if the index has none. */
  waitForRate: RateLimit | undefined,
): Export {
  const idsOf = async ({ ids, user_id, max_bytes, after: token, ...query }: ExportQuery, call: Call) => {
    // They come as one page: the largest answer has room for about as many.
    if (ids) return { ids, next: undefined };
    const limit = Math.max(1, Math.min(query.limit, Math.floor(max_bytes / RECORD_BYTES)));
    if (user_id === undefined || !waitForRate)
      return service.list(namespace, { prefix: '', limit: Math.min(limit, MAX_LISTED), token }, call);
    await waitForRate(call);
    const filter = userFilter(user_id, [], { user: fields.user, tags: '' });
    const page = { filter, limit: Math.min(limit, largestPage(dimensions)), token };
    const found = await service.fetchByMetadata(namespace, page, call);
    if (!found) throw providerError(PROVIDER, 'Pinecone does not list by metadata any more');
    return { ids: found.records.map(({ id }) => id), next: found.next };
  };
  return async (query, call) => {
    const { user_id, since = '', vectors } = query;
    if (since !== '' && fields.created === undefined && fields.updated === undefined)
      throw new OmpError('unsupported_capability', 'since: the index has no times', { provider: PROVIDER });
    const { ids, next } = await idsOf(query, call);
    const records = await find(ids, user_id === undefined ? null : [user_id], call);
    const items = [...records.values()]
      .filter(({ memory }) => memory.updated_at >= since)
      .map(({ memory, vector }) => ({ memory, vector: vectors ? vector : null }));
    return { items, next };
  };
}
