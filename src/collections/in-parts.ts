import { type Call, OmpError } from '#contract';
import type { Collection, FoundPoint, Selection } from './collection.ts';
import { fetchAll } from './walk.ts';

/*
 * Reads whose answer is too large for the database, in parts: records may have megabytes, and a page has a hundred.
 */

const IDS: Selection = { fields: [], vector: false };

const isTooLarge = (error: unknown): error is OmpError =>
  error instanceof OmpError && error.code === 'payload_too_large';

/** The collection, whose reads are done in parts where its database cannot answer them at once. */
export function inParts(collection: Collection): Collection {
  const fetch: Collection['fetch'] = async (ids, select, call) => {
    try {
      return await collection.fetch(ids, select, call);
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      const { message, provider, cause } = error;
      // What others read at the same time counts too.
      if (ids.length === 1) throw new OmpError('provider_error', message, { provider, cause, retry: 'reads' });
      const half = Math.ceil(ids.length / 2);
      const first = await fetch(ids.slice(0, half), select, call);
      return [...first, ...(await fetch(ids.slice(half), select, call))];
    }
  };
  /** First the ids, which are short, then their points. */
  const found = async <Found extends FoundPoint>(
    read: (select: Selection) => Promise<readonly Found[]>,
    select: Selection,
    call: Call,
  ): Promise<readonly Found[]> => {
    try {
      return await read(select);
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      const places = await read(IDS);
      const points = await fetchAll(
        { ...collection, fetch },
        places.map(({ id }) => id),
        select,
        call,
      );
      // One was removed in between: fewer than asked for would mean that there are no more.
      if (points.length < places.length) return found(read, select, call);
      const byId = new Map(points.map((point) => [point.id, point]));
      return places.map((place) => ({ ...place, ...byId.get(place.id) }));
    }
  };
  return {
    ...collection,
    fetch,
    query: (request, call) => found((select) => collection.query({ ...request, select }, call), request.select, call),
    scan: (request, call) => found((select) => collection.scan({ ...request, select }, call), request.select, call),
  };
}
