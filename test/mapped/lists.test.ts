import fc from 'fast-check';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import type { ListQuery, Memory } from '#contract';
import type { Query } from '../../providers/postgres/client/connections.ts';
import { rowsRead } from '../../providers/postgres/commands/doctor-costs.ts';
import type { Layout } from '../../providers/postgres/mapped/layout.ts';
import { createMappedStatements } from '../../providers/postgres/mapped/mapped-statements.ts';
import { createReading } from '../../providers/postgres/mapped/row-reading.ts';
import { TIME_INDEX_SETTINGS } from '../../providers/postgres/mapped/time-index.ts';
import { comparedRows, createSearchStatements } from '../../providers/postgres/mapped/vector-search.ts';
import { call, listOf, searchFor } from '../support/requests.ts';
import { embedder, type MappedTable, openedTables, type Shape } from './tables.ts';

const { tableOf } = openedTables();

const shapeOf = (type: string): Pick<Shape, 'columns' | 'mapping'> => ({
  columns: `id text primary key, owner text, body text default 'text', written ${type}, embedding vector(64)`,
  mapping: {
    ...{ id: 'id', new_ids: 'text', embedding: 'embedding', content: 'body', user_id: 'owner' },
    ...(type !== 'int' && { created_at: 'written' }),
  },
});
const index = (table: MappedTable, keys: string) => table.sql(`create index on ${table.name} (${keys})`);

const DAY_MS = 86_400_000;
const START = Date.parse('2024-01-01T00:00:00Z');
/** What a row may hold, and the milliseconds that its record shows. */
const STORED: readonly (readonly [string | null, number])[] = [
  ['2024-01-01 00:00:00.000000+00', START],
  ['2024-01-01 00:00:00.000001+00', START],
  ['2024-01-01 00:00:00.000999+00', START],
  ['2024-01-01 00:00:00.001000+00', START + 1],
  ['2024-01-01 00:00:00.001999+00', START + 1],
  ['2024-01-01 00:00:00.002000+00', START + 2],
  ['2024-02-01 00:00:00.000000+00', START + 31 * DAY_MS],
  ['1970-01-01 00:00:00.000000+00', 0],
  ['1969-12-31 23:59:59.999500+00', -1],
  ['1900-01-01 00:00:00.000000+00', Date.parse('1900-01-01T00:00:00Z')],
  [null, 0],
  ['infinity', 0],
  ['-infinity', 0],
  ['0500-01-01 00:00:00+00 BC', 0],
];
const iso = (ms: number) => new Date(ms).toISOString();

describe('lists through an index on owner and time', () => {
  it.each([
    ['timestamptz', (ms: number) => ms],
    ['timestamp', (ms: number) => ms],
    ['date', (ms: number) => Math.floor(ms / DAY_MS) * DAY_MS],
  ])(
    '[SPEC GET /memories] [Decision 1] [Decision 2] of %s have the order of milliseconds, then of ids, on every page',
    async (type, shown) => {
      const table = await tableOf(shapeOf(type));
      await index(table, 'owner, written, id');
      expect((await table.layout()).timeIndex).toBeDefined();
      const provider = await table.open();
      const bound = fc.option(fc.constantFrom(...STORED.map(([, ms]) => ms)), { nil: undefined });
      const asked = fc.record({
        rows: fc.array(fc.constantFrom(...STORED), { maxLength: 24 }),
        limit: fc.integer({ min: 1, max: 4 }),
        since: bound,
        until: bound,
      });
      const property = fc.asyncProperty(asked, async ({ rows, limit, since, until }) => {
        const made = rows.map(([stored, ms], at) => ({ id: `note-${10 + ((at * 7) % 24)}`, stored, ms: shown(ms) }));
        await table.sql(`truncate ${table.name}`);
        await table.sql(
          `insert into ${table.name} (id, owner, written) select id, 'ana', (written::timestamptz at time zone 'UTC')${type === 'timestamptz' ? ` at time zone 'UTC'` : `::${type}`}
             from unnest($1::text[], $2::text[]) as u(id, written)`,
          [made.map(({ id }) => id), made.map(({ stored }) => stored)],
        );
        const wanted = made
          .filter(({ ms }) => (since === undefined || ms >= since) && (until === undefined || ms <= until))
          .sort((a, b) => b.ms - a.ms || (a.id < b.id ? 1 : -1))
          .map(({ id, ms }) => ({ id, created_at: iso(ms) }));
        const times = {
          ...(since !== undefined && { since: iso(since) }),
          ...(until !== undefined && { until: iso(until) }),
        };
        const listed: Pick<Memory, 'id' | 'created_at'>[] = [];
        for (let page: readonly Memory[] = []; ; ) {
          const after = listed.at(-1);
          page = await provider.list(listOf('ana', { limit, ...times, ...(after && { after }) }), call);
          if (page.length === 0) break;
          listed.push(...page.map(({ id, created_at }) => ({ id, created_at })));
        }
        expect(listed).toEqual(wanted);
      });
      await fc.assert(property, { numRuns: 40, seed: 7 });
    },
  );
});

describe('rows read', () => {
  const MANY = 3_000;
  const PAGE = 50;

  /** In a session that plans for the user, and in one that plans for any. */
  async function read(table: MappedTable, query: Query, settings: string): Promise<number[]> {
    const client = new pg.Client({ connectionString: table.url });
    await client.connect();
    try {
      const counts: number[] = [];
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        await client.query(`begin; set local plan_cache_mode = ${mode}; ${settings}`);
        const { rows } = await client.query(`explain (analyze, format json) ${query.statement.text}`, [
          ...query.values,
        ]);
        await client.query('rollback');
        counts.push(rowsRead(rows[0]['QUERY PLAN'][0].Plan));
      }
      return counts;
    } finally {
      await client.end();
    }
  }

  const filled = async (type: string) => {
    const table = await tableOf(shapeOf(type));
    const [vector] = (await embedder.embed(['text'], 'document', call)) as [Float32Array];
    const written = type === 'int' ? 'n' : `timestamptz '2024-01-01' + n * interval '1.0003 seconds'`;
    await table.sql(
      `insert into ${table.name} (id, owner, written, embedding) select 'note-' || 10000 + n, case when n % 2 = 0 then 'ana' else 'user-' || n % 500 end, ${written}, $1
         from generate_series(1, ${2 * MANY}) as n`,
      [`[${vector.join()}]`],
    );
    await table.sql(`analyze ${table.name}`);
    return { table, vector };
  };
  const statementsOf = (layout: Layout) => {
    const reading = createReading(layout, 'model');
    const statements = createMappedStatements(layout, reading);
    return { ...statements, ...createSearchStatements(layout, reading, statements) };
  };
  const pages = (layout: Layout, created_at: string): [Query, Query] => {
    const { list } = statementsOf(layout);
    const at = (more: Partial<ListQuery>) => list(listOf('ana', { limit: PAGE, ...more }));
    return [at({}), at({ after: { id: 'note-15000', created_at } })];
  };

  it('[Decision 25] of a page: little more than its own, if an index has the owner and the time', async () => {
    const { table } = await filled('timestamptz');
    const without = await table.layout();
    expect(without.timeIndex).toBeUndefined();
    for (const query of pages(without, '2024-01-01T01:00:00.000Z'))
      for (const rows of await read(table, query, '')) expect(rows).toBeGreaterThan(MANY / 2);
    await index(table, 'owner, written, id');
    const layout = await table.layout();
    for (const query of pages(layout, '2024-01-01T01:00:00.000Z'))
      for (const rows of await read(table, query, TIME_INDEX_SETTINGS)) expect(rows).toBeLessThan(4 * PAGE);
  });

  it('[Decision 25] of a page without times: its own, if an index has the owner and the id', async () => {
    const { table } = await filled('int');
    await index(table, 'owner, id');
    await table.sql(`analyze ${table.name}`);
    for (const query of pages(await table.layout(), '1970-01-01T00:00:00.000Z'))
      for (const rows of await read(table, query, '')) expect(rows).toBeLessThan(4 * PAGE);
  });

  it('[Decision 25] of a search that compares all: each row of the table once, and of a larger user few more than it compares', async () => {
    const { table, vector } = await filled('timestamptz');
    await index(table, 'owner, written, id');
    const { bounded } = statementsOf(await table.layout());
    const wanted = { query: searchFor('ana', 'text'), vector };
    for (const rows of await read(table, bounded(wanted, MANY), '')) expect(rows).toBeLessThanOrEqual(2 * MANY);
    for (const rows of await read(table, bounded(wanted, 1_000), '')) expect(rows).toBeLessThan(2_100);
  });

  it('[Decision 25] are what decides whether an index over many rows is cheaper than comparing all of a user', () => {
    const of = (rows: number) => comparedRows(10_000, { rows } as Layout['vector']['index']);
    expect(comparedRows(10_000, undefined)).toBe(10_000);
    expect([of(0), of(400_000), of(2_000_000), of(50_000_000)]).toEqual([10_000, 10_000, 20_000, 100_000]);
  });
});
