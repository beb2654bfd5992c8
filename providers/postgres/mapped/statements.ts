import type { ListQuery, Ref } from '#contract';
import { rememberStatements } from '../client/connections.ts';
import { firstWithin } from '../rows.ts';
import type { Query } from '../statements.ts';
import { type Conditions, conditions } from '../tables/conditions.ts';
import type { Layout } from './layout.ts';
import { unsupported } from './places.ts';
import type { Reading } from './record.ts';
import { type Changes, type NewRow, newRow, rowChanges } from './row-writes.ts';
import { recheck, whereAfter, whereOne, whereScopeGlob, whereUser } from './where.ts';

/** What each verb but search sends. Texts differ only by the filters and fields present, so each is prepared once. */
export type Statements = ReturnType<typeof createStatements>;

/** Owners may have written numbers with more digits than records have: measured here, those take more bytes. */
export const mostBytes = ({ max_bytes }: Pick<ListQuery, 'max_bytes'>): number => 2 * max_bytes;

/** Those about one row are undefined for an id that no row of such a table can have. */
export function createStatements(layout: Layout, reading: Reading) {
  const { from, table } = layout;
  const { columns, created } = reading;
  const statement = rememberStatements();
  const query = (text: string, { values }: Conditions): Query => ({ statement: statement(text), values });
  const sameFor = (ref: Ref, write: (where: Conditions) => string): Query | undefined => {
    const where = whereOne(layout, ref);
    return where && query(write(where), where);
  };

  const rowOf = ({ id, users, within }: Ref) => ({
    id,
    owners: users === null ? null : users.flatMap((user) => layout.owner.toStored(user) ?? []),
    within,
  });

  return {
    query,

    select: (ref: Ref) => sameFor(ref, (where) => `select ${columns} from ${from} where ${where}`),

    list(wanted: ListQuery): Query {
      const where = whereUser(layout, wanted);
      whereScopeGlob(layout, where, wanted);
      for (const [name, is] of [
        ['since', '>='],
        ['until', '<='],
      ] as const) {
        const bound = wanted[name];
        if (bound === undefined) continue;
        if (created === undefined) throw unsupported(`${name}: the table keeps no time of creation`);
        where.and(`${created} ${is} ${where.place(bound)}::timestamptz`);
      }
      whereAfter(layout, where, { after: wanted.after, created });
      const sorts = reading.order.map((sql, place) => ({ sql, name: `sort_${place}` }));
      const order = sorts.map(({ name }) => `${name} desc`).join(', ');
      const rows = `select ${columns}, ${sorts.map(({ sql, name }) => `${sql} as ${name}`).join(', ')}
        from ${from} where ${where} order by ${order} limit ${where.place(wanted.limit)}`;
      const sized = `select *, ${reading.bytes} as bytes from (${rows}) as rows`;
      const kept = firstWithin(sized, order, where.place(mostBytes(wanted)));
      return query(`select * from ${kept} as kept order by ${order}`, where);
    },

    /** Returns the row as it was kept; none when its collection is gone. */
    insert(row: NewRow): Query {
      const where = conditions();
      const values = newRow(layout, where, row);
      const into = `insert into ${table} as t (${[...values.keys()].join(', ')})`;
      // A collection that is gone has no key: a row without one would be nobody's.
      const demands = layout.newColumns(where).map(({ value }) => `${value} is not null`);
      const when = demands.length > 0 ? `where ${demands.join(' and ')}` : '';
      const { user_id, scope } = row.input;
      const kept = recheck(layout, where, { id: row.id, owners: [user_id], within: scope === null ? null : [scope] });
      return query(`${into} select ${[...values.values()].join(', ')} ${when} returning ${columns}, ${kept}`, where);
    },

    /** Returns the row if it was changed. Sets nothing but what is given, and the time of change where there is one. */
    update: (ref: Ref, changes: Changes) =>
      sameFor(ref, (where) => {
        const sets = rowChanges({ layout, reading, where }, changes);
        const changed = `update ${table} as t set ${sets.join(', ')} where ${where}`;
        return `${changed} returning ${columns}, ${recheck(layout, where, rowOf(ref))}`;
      }),

    /** Returns a row if there was one. */
    remove: (ref: Ref) =>
      sameFor(
        ref,
        (where) => `delete from ${table} as t where ${where} returning ${recheck(layout, where, rowOf(ref))}`,
      ),
  };
}
