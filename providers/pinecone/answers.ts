import type { Answer } from './exchange.ts';
import type { Failure } from './failure.ts';
import type { Lsn, Match, StoredRecord } from './service.ts';

/** As much of the answers as is used; every part may be missing. */
interface Body {
  readonly vectors?: Readonly<Record<string, Partial<StoredRecord>>>;
  readonly pagination?: { readonly next?: string };
}

/** Of fetch and fetch_by_metadata. */
export const recordsOf = ({ body }: Answer): StoredRecord[] =>
  Object.entries((body as Body).vectors ?? {}).map(([id, { values = [], metadata = {} }]) => ({
    id,
    values,
    metadata,
  }));

/** Of fetch_by_metadata. */
export const recordPage = (answer: Answer) => ({
  records: recordsOf(answer),
  next: (answer.body as Body).pagination?.next || undefined,
});

/** Of list. */
export function idPage({ body }: Answer): { ids: string[]; next: string | undefined } {
  const { vectors = [], pagination } = body as Pick<Body, 'pagination'> & { vectors?: { id: string }[] };
  const ids = vectors.map(({ id }) => id);
  return { ids, next: (ids.length > 0 && pagination?.next) || undefined };
}

/** Of query. */
export function matchesOf({ body, headers }: Answer): { matches: Match[]; indexedLsn: Lsn } {
  const { matches = [] } = body as { matches?: Match[] };
  return {
    matches: matches.map(({ id, score, metadata }) => ({ id, score, metadata })),
    indexedLsn: lsnOf(headers, 'x-pinecone-max-indexed-lsn'),
  };
}

/** Of a write. */
export const writtenLsn = ({ headers }: Answer): Lsn => lsnOf(headers, 'x-pinecone-request-lsn');

export function statsOf({ body }: Answer): { dimension: number | undefined; metric: string | undefined } {
  const { dimension, metric } = body as { dimension?: number; metric?: string };
  return { dimension, metric };
}

/** Not every index tells. */
function lsnOf(headers: Headers, name: string): Lsn {
  const value = headers.get(name);
  const lsn = value !== null && /^\d+$/.test(value) ? Number(value) : undefined;
  return Number.isSafeInteger(lsn) ? lsn : undefined;
}

/** Where there is no namespace there is nothing to change. */
export function nothingThere(failure: Failure): undefined {
  if (!failure.namespaceMissing) throw failure;
}

/** Nothing of a namespace that is not there; undefined where the request itself is not known. */
export function noRecords(failure: Failure): ReturnType<typeof recordPage> | undefined {
  if (failure.namespaceMissing) return { records: [], next: undefined };
  if (failure.status !== undefined && [404, 405, 501].includes(failure.status)) return undefined;
  throw failure;
}
