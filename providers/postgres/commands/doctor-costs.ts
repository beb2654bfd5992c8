import type { Finding, ListQuery } from '#provider';
import type { Query } from '../client/connections.ts';
import { hasIndexOn, type Table } from '../mapped/catalogue.ts';
import { createUserIndex, quotedTable, RESTART } from '../mapped/index-sql.ts';
import type { Layout } from '../mapped/layout.ts';
import { createMappedStatements } from '../mapped/mapped-statements.ts';
import type { ResolvedMapping } from '../mapped/mapping.ts';
import { createReading } from '../mapped/row-reading.ts';
import { listKeys, TIME_INDEX_SETTINGS } from '../mapped/time-index.ts';
import { createSearchStatements, INDEX_SETTINGS } from '../mapped/vector-search.ts';
import { isCancelled } from '../postgres-errors.ts';
import { conditions } from '../sql/conditions.ts';
import { vectorIn } from '../sql/values.ts';
import { ok, type Read, type TableSize, warning } from './doctor-common.ts';

/** Rows that are sampled to find the user who has most. */
const SAMPLE = 20_000;
/** A page with its successor, and hits. */
const [PAGE, HITS] = [51, 10];
/** A list that reads more rows than this does not read through an index that has its order. */
const MANY = 1_000;
/** Longest time of one statement, in milliseconds: the default of OMP_POSTGRES_QUERY_TIMEOUT_MS. */
const LONGEST_MS = 10_000;

interface Costs {
  readonly layout: Layout;
  readonly table: Table;
  readonly mapping: ResolvedMapping;
  readonly size: TableSize | undefined;
  /** The most rows of a user that a search compares all. */
  readonly compared: number;
}

/** What get, list and search of the user with most rows read: each runs once. Names no user. */
export async function checkCosts(read: Read, costs: Costs): Promise<Finding[]> {
  const { layout, table, mapping, size, compared } = costs;
  const rows = size?.rows ?? null;
  if (rows === null || rows === 0 || table.kind === 'view' || table.kind === 'foreign') return [];
  const user = await largestUser(read, costs, rows);
  if (!user) return [];
  const { user_id, share, id, vector } = user;
  const largest = size?.largest ?? share * rows;
  const reading = createReading(layout, 'unknown');
  const statements = createMappedStatements(layout, reading);
  const visible = { users: null, within: null } as const;
  const query = {
    ...visible,
    user_id,
    tags: [],
    limit: PAGE,
    max_bytes: 1e12,
  } satisfies ListQuery;
  const work: [string, Query | undefined, string][] = [
    ['get', statements.select({ ...visible, id }), ''],
    ['list', statements.list(query), layout.timeIndex ? TIME_INDEX_SETTINGS : ''],
  ];
  if (vector != null) {
    const search = createSearchStatements(layout, reading, statements);
    const wanted = { query: { ...query, limit: HITS, text: '', vector: vectorIn(vector) }, vector: vectorIn(vector) };
    const { index } = layout.vector;
    const through = index?.ranks && index.iterative && largest > compared ? index : undefined;
    work.push([
      'search',
      through ? search.indexed(wanted) : search.bounded(wanted, compared),
      through ? INDEX_SETTINGS[through.method] : '',
    ]);
  }
  const told: string[] = [];
  let listed = 0;
  for (const [verb, statement, settings] of work) {
    const cost = statement && (await run(read, statement, settings));
    if (verb === 'list') listed = cost ? cost.rows : Number.POSITIVE_INFINITY;
    told.push(
      `${verb} ${cost ? `${cost.rows} (${cost.ms.toFixed(1)} ms)` : `more than it can in ${LONGEST_MS / 1_000} s`}`,
    );
  }
  const label = `of the user with most rows (about ${Number(largest.toPrecision(2)).toLocaleString('en')})`;
  const findings = [ok('indexes', `${label} this many rows are read: ${told.join(', ')}`)];
  if (listed <= MANY) return findings;
  const keys = listKeys(table, mapping);
  if (!keys)
    return [
      ...findings,
      warning(
        'indexes',
        `${label} a list reads and sorts all rows for each page: its times are no timestamptz, timestamp or date, so no index has their order`,
      ),
    ];
  const ordered = hasIndexOn(table, ...(layout.temporal ? keys.slice(0, -mapping.id.length) : keys));
  const why = ordered
    ? 'the planner does not use the index that has the order of lists'
    : 'no index has the order of lists';
  const analyze = {
    sql: `analyze ${quotedTable(table)};`,
    reason: 'tells the planner what the index holds: it has statistics of a path only with an index',
  };
  const create = {
    sql: createUserIndex(table, mapping) ?? '',
    reason: `a page then reads little more than its own rows; ${RESTART}`,
  };
  return [
    ...findings,
    warning(
      'indexes',
      `${label} a list reads and sorts all rows for each page: ${why}`,
      ...(ordered ? [] : [create]),
      analyze,
    ),
  ];
}

/** By a sample, which is bounded by itself: statistics may be old, and without an index the server has none of a path. */
async function largestUser(read: Read, { layout, table }: Costs, rows: number) {
  const where = conditions();
  where.and(layout.always(where));
  const percent = Math.min(100, (100 * SAMPLE) / rows);
  const [most] = await read<{ owner: string; share: number }>(
    `select owner, (count(*) / sum(count(*)) over ())::float8 as share
       from (select ${layout.fields.user_id?.read} as owner
         from ${quotedTable(table)} as t tablesample system (${percent}) repeatable (1) where ${where} limit ${5 * SAMPLE}) as sampled
       group by owner order by share desc limit 1`,
    where.values,
  );
  const user_id = most && layout.owner.toUser(most.owner);
  if (user_id === undefined) return undefined;
  const own = conditions();
  own.and(layout.owner.is(own, [user_id]));
  own.and(layout.always(own));
  const [row] = await read<{ id: string; vector: string | null }>(
    `select ${layout.id.read} as id, case when ${layout.vector.comparable} then ${layout.vector.read} end as vector from ${layout.from} where ${own} limit 1`,
    own.values,
  );
  return row && { user_id, share: most?.share ?? 0, ...row };
}

interface Plan {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Plan[];
}

/** Rows that a plan has read of tables. */
export const rowsRead = (plan: Plan): number =>
  (plan['Relation Name'] === undefined
    ? 0
    : ((plan['Actual Rows'] ?? 0) +
        (plan['Rows Removed by Filter'] ?? 0) +
        (plan['Rows Removed by Index Recheck'] ?? 0)) *
      (plan['Actual Loops'] ?? 1)) + (plan.Plans ?? []).reduce((sum, inner) => sum + rowsRead(inner), 0);

/** Undefined if it takes too long. */
async function run(read: Read, { statement, values }: Query, settings: string) {
  await read(`savepoint costs; set local jit = off; set local statement_timeout = ${LONGEST_MS}; ${settings}`);
  try {
    const [row] = await read<{ 'QUERY PLAN': [{ Plan: Plan; 'Execution Time': number }] }>(
      `explain (analyze, timing off, format json) ${statement.text}`,
      values,
    );
    const [explained] = (row as NonNullable<typeof row>)['QUERY PLAN'];
    return { rows: rowsRead(explained.Plan), ms: explained['Execution Time'] };
  } catch (error) {
    if (isCancelled(error)) return undefined;
    throw error;
  } finally {
    await read('rollback to savepoint costs');
  }
}
