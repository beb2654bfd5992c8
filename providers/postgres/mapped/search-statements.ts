import type { SearchQuery } from '#contract';
import type { Conditions } from '../tables/conditions.ts';
import { firstWithin } from '../tables/memory-rows.ts';
import type { Query } from '../tables/memory-statements.ts';
import type { Layout } from './layout.ts';
import { mostBytes, type Statements, whereScopePrefix, whereUser } from './mapped-statements.ts';
import type { Reading } from './row-reading.ts';

/** How many more of the nearest are taken from an index than asked for: it knows only nearly which are. */
const OVERFETCH = 4;

/** How many an index looks at in one go. It goes on until enough of them are the user's. */
const IN_ONE_GO = 200;

/**
 * Session settings of a search through an index. Without sorting the planner is left with the index: it cannot know that
 * the user has many rows, where the owner is found in JSON, and would sort them all.
 */
export const INDEX_SETTINGS = {
  hnsw: `set local enable_sort = off; set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = ${IN_ONE_GO}`,
  ivfflat:
    'set local enable_sort = off; set local ivfflat.iterative_scan = relaxed_order; set local ivfflat.probes = 20',
} as const;

interface Wanted {
  readonly query: SearchQuery;
  readonly vector: Float32Array;
}

/** Best first: by score, and alike in the order of lists. Rows without a vector that can be compared are left out. */
export type SearchStatements = ReturnType<typeof createSearchStatements>;

export function createSearchStatements(layout: Layout, reading: Reading, { query: prepare }: Statements) {
  const { from, vector: column } = layout;
  const sorts = reading.order.map((sql, place) => ({ sql, name: `sort_${place}` }));
  // Where the length of vectors counts, scores may end at 0 or 1 while distances go on.
  const nearer = column.metric === 'cosine' ? [] : ['distance'];
  const order = ['score desc', ...nearer, ...sorts.map(({ name }) => `${name} desc`)].join(', ');

  const statement = ({ query, vector }: Wanted, write: (parts: Parts) => string): Query => {
    const where = whereUser(layout, query);
    whereScopePrefix(layout, where, query);
    const { max_content_bytes: most } = query;
    if (most !== undefined) where.and(`octet_length(${layout.fields.content?.read}) <= ${where.place(most)}::int8`);
    const distance = column.distance(where.place(column.encode(vector)));
    const rows = `${reading.columns}, ${distance} as distance, ${sorts.map(({ sql, name }) => `${sql} as ${name}`).join(', ')}`;
    const near = (more: string) => `select ${rows} from ${from} where ${where} and ${column.comparable} ${more}`;
    const prepared = prepare(write({ where, distance, near }), where);
    return { ...prepared, statement: { ...prepared.statement, heavy: true } };
  };
  const best = (where: Conditions, of: string, query: SearchQuery) => {
    const hits = `select *, ${column.score('distance')} as score from ${of} as hit order by ${order} limit ${where.place(query.limit)}`;
    const sized = `select *, ${reading.bytes} as bytes from (${hits}) as hits`;
    return `select * from ${firstWithin(sized, order, where.place(mostBytes(query)))} as kept order by ${order}`;
  };

  return {
    /** Looks at all rows of the user. */
    exact: (wanted: Wanted): Query =>
      statement(wanted, ({ where, near }) => best(where, `(${near('')})`, wanted.query)),

    /** The same unless there are more than `most`: then no row has an id, and each tells so in `many`. */
    bounded: (wanted: Wanted, most: number): Query =>
      statement(wanted, ({ where, near }) => {
        const bound = where.place(most);
        const counted = `select count(*) > ${bound}::int as many from (select from ${from} where ${where} limit ${bound}::int + 1) as first_rows`;
        const hits = best(where, `(${near('and not (select many from size)')})`, wanted.query);
        return `with size as materialized (${counted}) select * from size left join (${hits}) as hits on true order by ${order}`;
      }),

    /** The nearest by the index, to be sent with `INDEX_SETTINGS`. May come back with too few. */
    indexed: (wanted: Wanted): Query =>
      statement(wanted, ({ where, distance, near }) => {
        const some = where.place(wanted.query.limit * OVERFETCH);
        const nearest = near(`order by ${distance} limit ${some}`);
        return `with near as materialized (${nearest}) ${best(where, 'near', wanted.query)}`;
      }),
  };
}

interface Parts {
  readonly where: Conditions;
  /** SQL of the distance, as the index knows it. */
  readonly distance: string;
  /** Statement of the rows that match, with what they are ranked by. */
  near(more: string): string;
}
