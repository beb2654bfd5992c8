import type { Call } from '#contract';
import type { Match, QueryRequest } from '../client/client.ts';
import { validIds } from '../client/client.ts';
import type { Existing } from './parts.ts';

export interface Nearest {
  /** Nearest first, with their metadata; read as far as they are wanted. */
  readonly matches: Iterable<Match> | AsyncIterable<Match>;
  /** Whether there are no more than these. */
  readonly exhausted: boolean;
}

/** An answer of 4 MB is refused: of so many matches the metadata, 40 KB at most each, fit in. */
const MAX_TOP_K_WITH_METADATA = 95;
/** Fetched at a time. */
const FETCHED = 100;

/** The records nearest to a vector, up to `topK` of them. */
export async function askNearest(
  { service, namespace }: Pick<Existing, 'service' | 'namespace'>,
  request: Omit<QueryRequest, 'includeMetadata'>,
  call: Call,
): Promise<Nearest> {
  const ask = async (includeMetadata: boolean) =>
    (await service.query(namespace, { ...request, includeMetadata }, call)).matches;
  const described = request.topK <= MAX_TOP_K_WITH_METADATA;
  const matches = await ask(described);

  async function* read(): AsyncGenerator<Match> {
    for (let start = 0; start < matches.length; start += FETCHED) {
      const chunk = matches.slice(start, start + FETCHED);
      const ids = chunk.map(({ id }) => id);
      const records = await service.fetch(namespace, ids, call);
      // Ids that cannot be fetched, such as those with spaces, are told by a query that answers in full, or fails.
      const told = validIds(ids).length < ids.length ? await ask(true) : [];
      const others = new Map(told.map((match) => [match.id, match]));
      for (const match of chunk) {
        yield { ...match, metadata: (records.get(match.id) ?? others.get(match.id))?.metadata };
      }
    }
  }
  return { matches: described ? matches : read(), exhausted: matches.length < request.topK };
}
