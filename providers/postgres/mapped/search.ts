import { type Call, countWithin, type SearchHit, type SearchQuery } from '#contract';
import { toUnit } from '#ranking';
import type { Database, Row } from '../client/connections.ts';
import { type LargeUsers, rememberLargeUsers } from './large.ts';
import type { Layout } from './layout.ts';
import { requireTags, type Statements } from './mapped-statements.ts';
import type { Reading } from './row-reading.ts';
import { createSearchStatements, INDEX_SETTINGS } from './search-statements.ts';

export interface SearchOptions {
  readonly db: Database;
  readonly layout: Layout;
  readonly reading: Reading;
  readonly statements: Statements;
  /** A user with more rows than this is searched through the index, where there is one. */
  readonly large_user_rows: number;
  readonly large?: LargeUsers;
}

/**
 * Searches by vectors alone. Up to `large_user_rows` rows that match, all are compared; that is exact, and for so few
 * faster than an index that everybody shares. Beyond, the index gives the nearest; when it gives too few (it gives up
 * after so many rows of others), all rows are compared after all.
 */
export function createSearch(options: SearchOptions) {
  const { db, layout, reading, statements, large_user_rows, large = rememberLargeUsers() } = options;
  const { exact, bounded, indexed } = createSearchStatements(layout, reading, statements);
  const { index } = layout.vector;
  const toHits = (rows: readonly Row[]): SearchHit[] =>
    rows.flatMap((row) => {
      const memory = reading.toMemory(row);
      return memory ? [{ memory, score: row.score as number }] : [];
    });

  return async (query: SearchQuery, call: Call): Promise<SearchHit[]> => {
    requireTags(layout, query.tags);
    const wanted = { query, vector: toUnit(query.vector) };
    const all = async () => {
      const { statement, values } = exact(wanted);
      return toHits(await db.query(statement, values, call));
    };
    // An index that does not go on until enough rows are the user's finds next to nothing for most users.
    if (!index?.iterative) return all();

    // What is known of a user says nothing of how many of the rows match.
    const filtered = query.scope !== undefined || query.tags.length > 0 || query.within !== null;
    if (filtered || !large.has(query.user_id)) {
      const { statement, values } = bounded(wanted, large_user_rows);
      const rows = await db.query(statement, values, call);
      if (rows[0]?.many !== true) return toHits(rows.filter(({ id }) => id !== null));
      if (!filtered) large.add(query.user_id);
    }
    const { statement, values } = indexed(wanted);
    const hits = toHits(await db.queryWith(INDEX_SETTINGS[index.method], statement, values, call));
    const records = hits.map(({ memory }) => memory);
    const isFull = hits.length >= query.limit || countWithin(records, query.max_bytes) < hits.length;
    return isFull ? hits : all();
  };
}
