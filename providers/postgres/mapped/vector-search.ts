import { LRUCache } from 'lru-cache';
import type { Call, SearchHit, SearchQuery } from '#provider';
import { countWithin, toUnit } from '#provider';
import type { Query, Row } from '../client/connections.ts';
import type { Conditions } from '../sql/conditions.ts';
import { firstWithin } from '../sql/conditions.ts';
import type { Layout, VectorColumn } from './layout.ts';
import {
  doubledBytes,
  type MappedStatements,
  type RunMapped,
  requireTags,
  whereInTime,
  whereScopePrefix,
  whereUser,
} from './mapped-statements.ts';
import type { Reading } from './row-reading.ts';

export interface SearchOptions {
  readonly run: RunMapped;
  readonly layout: Layout;
  readonly reading: Reading;
  readonly statements: MappedStatements;
  /** A user with more rows than this is searched through the index, if there is one. */
  readonly large_user_rows: number;
}

/**
 * Searches by vectors. Up to `large_user_rows` matching rows are all compared: that is exact, and for so few rows faster than
 * the index over all users. For more rows the index returns the nearest. If it returns too few (its scan stops after a
 * number of rows of other users), all rows are compared; from then on always, if its order depends on the length of vectors and one
 * has another length than the query.
 */
export function createVectorSearch(options: SearchOptions) {
  const { run, layout, reading, statements, large_user_rows } = options;
  // Users who recently had too many rows for an exact search. An evicted one costs one exact attempt, never a result.
  const large = new LRUCache<string, true>({ max: 10_000, ttl: 60_000 });
  const { exact, bounded, indexed } = createSearchStatements(layout, reading, statements);
  const { index } = layout.vector;
  const most = comparedRows(large_user_rows, index);
  // Without iterative scans an index finds almost nothing for most users.
  let ranks = index?.iterative && index.ranks;
  const toHits = (rows: readonly Row[]): SearchHit[] =>
    rows.flatMap((row) => {
      const memory = reading.toMemory(row);
      return memory ? [{ memory, score: row.score as number }] : [];
    });

  return async (query: SearchQuery, call: Call): Promise<SearchHit[]> => {
    requireTags(layout, query.tags);
    const wanted = { query, vector: toUnit(query.vector) };
    const all = async () => toHits(await run(exact(wanted), call));
    if (!ranks || !index) return all();

    // A large user may have few rows that match a filter.
    const { scope, tags, within, since, until } = query;
    const filtered = tags.length > 0 || within !== null || [scope, since, until].some((filter) => filter !== undefined);
    if (filtered || !large.has(query.user_id)) {
      const rows = await run(bounded(wanted, most), call);
      if (rows[0]?.many !== true) return toHits(rows);
      if (!filtered) large.set(query.user_id, true);
    }
    const rows = await run(indexed(wanted), call, INDEX_SETTINGS[index.method]);
    // The application may have filled the table since the start.
    if (rows.some(({ unit }) => unit === false)) ranks = false;
    if (!ranks) return all();
    const hits = toHits(rows);
    const records = hits.map(({ memory }) => memory);
    const isFull = hits.length >= query.limit || countWithin(records, query.max_bytes) < hits.length;
    return isFull ? hits : all();
  };
}

// Statements

/** Factor by which more rows are taken from an index than asked for: the index is approximate. */
const OVERFETCH = 2;

/** Rows of one step of an index scan. The scan continues until enough rows are the user's. */
const SCAN_STEP = 100;

/** Below so many rows in the index, the setting alone decides who is a large user. */
const SMALL_INDEX = 100_000;
/**
 * A scan reads more of the index the fewer of its rows are the user's, and comparing all reads a page for each row of the user. For ten hits both
 * read as much at the square root of so many times the rows in the index.
 */
const COST_OF_WALK = 200;

/** The most rows of a user that are all compared. */
export const comparedRows = (large_user_rows: number, index: VectorColumn['index']): number =>
  index && index.rows >= SMALL_INDEX
    ? Math.max(large_user_rows, Math.floor(Math.sqrt(COST_OF_WALK * index.rows)))
    : large_user_rows;

/**
 * Session settings of a search through an index. Disabling sorts makes the planner use the index. It has no statistics of a
 * user in JSON, so it would underestimate the rows and sort them all.
 */
export const INDEX_SETTINGS = {
  hnsw: `set local enable_sort = off; set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = ${SCAN_STEP}`,
  ivfflat:
    'set local enable_sort = off; set local ivfflat.iterative_scan = relaxed_order; set local ivfflat.probes = 20',
} as const;

interface VectorQuery {
  readonly query: SearchQuery;
  readonly vector: Float32Array;
}

/** Best first; equal scores in the order of lists. Omits rows without a comparable vector. */
export function createSearchStatements(layout: Layout, reading: Reading, { query: prepare }: MappedStatements) {
  const { from, vector: column } = layout;
  const sorts = reading.order.map((sql, at) => ({ sql, name: `sort_${at}` }));
  const { distance: nearness = column.distance, isUnit, metric = 'cosine' } = column.index ?? {};
  const unit = metric === 'cosine' ? '' : `, ${isUnit} as unit`;
  const order = ['score desc', ...sorts.map(({ name }) => `${name} desc`)].join(', ');

  const statement = ({ query, vector }: VectorQuery, write: (parts: StatementParts) => string): Query => {
    const where = whereUser(layout, query);
    whereScopePrefix(layout, where, query);
    whereInTime(where, query, reading.created);
    const { max_content_bytes: most } = query;
    if (most !== undefined) where.and(`octet_length(${layout.fields.content?.read}) <= ${where.bind(most)}::int8`);
    const parameter = where.bind(column.encode(vector));
    const rows = `${reading.columns}, ${column.distance(parameter)} as distance, ${sorts.map(({ sql, name }) => `${sql} as ${name}`).join(', ')}`;
    const near = (more: string, selected = '') =>
      `select ${rows}${selected} from ${from} where ${where} and ${column.comparable} ${more}`;
    return prepare('heavy', write({ where, nearness: nearness(parameter), near }), where);
  };
  const best = (where: Conditions, of: string, query: SearchQuery, by = order) => {
    const hits = `select *, ${column.score('distance')} as score from ${of} as hit order by ${by} limit ${where.bind(query.limit)}`;
    const sized = `select *, ${reading.bytes} as bytes from (${hits}) as hits`;
    return `select * from ${firstWithin(sized, by, where.bind(doubledBytes(query)))} as kept order by ${by}`;
  };

  return {
    /** Compares all rows of the user. */
    exact: (wanted: VectorQuery): Query =>
      statement(wanted, ({ where, near }) => best(where, `(${near('')})`, wanted.query)),

    /** The same for at most `most` rows. If there are more, `many` is true in the first row, and the result is worthless. */
    bounded: (wanted: VectorQuery, most: number): Query =>
      statement(wanted, ({ where, near }) => {
        const bound = `${where.bind(most)}::int`;
        // One row too many comes first: compared and counted on one way through the rows, each of which may be a page of its own.
        const rows = near(`limit ${bound} + 1`, `, row_number() over () > ${bound} as many`);
        return best(where, `(${rows})`, wanted.query, `many desc, ${order}`);
      }),

    /** The nearest by the index; needs `INDEX_SETTINGS`. May return too few. */
    indexed: (wanted: VectorQuery): Query =>
      statement(wanted, ({ where, nearness, near }) => {
        const some = where.bind(wanted.query.limit * OVERFETCH);
        const nearest = near(`order by ${nearness} limit ${some}`, unit);
        return `with near as materialized (${nearest}) ${best(where, 'near', wanted.query)}`;
      }),
  };
}

interface StatementParts {
  readonly where: Conditions;
  /** SQL of what the index orders by, in the form that it serves. */
  readonly nearness: string;
  /** A statement of the matching rows with the values that rank them. */
  near(more: string, selected?: string): string;
}
