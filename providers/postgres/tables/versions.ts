import {
  type Call,
  type MemoryVersion,
  ORIGIN,
  type Ref,
  type VersionOptions,
  type VersionStore,
  type WrittenQuery,
} from '#provider';
import type { Query, Row, Run, rememberStatements } from '../client/connections.ts';
import type { Located } from '../scaling/placement.ts';
import { type Conditions, conditionOf, conditions, firstWithin, whereWithin } from '../sql/conditions.ts';
import { part, type WithPart, withParts } from '../sql/parts.ts';
import { insertChangeEntry } from './change-statement.ts';
import { whereOne } from './conditions.ts';
import { BYTES, COLUMN_NAMES, columnsOf, type RecordColumn, toMemory } from './memory-rows.ts';
import type { Names } from './names.ts';

/*
 * Versions of memories: the statement of a change copies what it replaces.
 */

/** A memory as it was before a change, in the order of the columns of a version. */
export type Before = WithPart<'bucket' | 'version' | RecordColumn>;

export const keepVersion = ({ versions }: Names, before: Before, changed: WithPart<'id' | 'updated_at'>): WithPart =>
  part('kept')`insert into ${versions} (bucket, version, ${COLUMN_NAMES}, replaced_at)
    select ${before}.*, ${changed}.${changed.updated_at} from ${before} join ${changed} using (${changed.id})`;

/** Deletes the versions whose numbers are beyond the limit. */
export const dropVersions = (
  names: Names,
  { max, before }: VersionOptions & { readonly before: Before },
  changed: WithPart<'id'>,
): WithPart =>
  part(
    'dropped',
  )`delete from ${names.versions} where ${names.placement.inShard()} and id in (select ${changed.id} from ${changed})
    and version <= (select ${before.version} from ${before}) - ${max}`;

export const toVersion = (row: Row): MemoryVersion => ({
  version: row.version as number,
  memory: { ...toMemory(row, null), status: null },
});

interface Options {
  readonly run: Run;
  readonly model: string | null;
  readonly audited: boolean;
  readonly statement: ReturnType<typeof rememberStatements>;
  /** Runs a statement about one memory. */
  byId(ref: Ref, call: Call, query: (ref: Located) => Query): Promise<Row[]>;
}

export function createVersions(names: Names, { run, model, audited, statement, byId }: Options): VersionStore {
  const { memories, versions } = names;
  return {
    async list({ ref, before, limit, max_bytes }, call) {
      const [current, ...rows] = await byId(ref, call, (located) => {
        const where = whereOne(located);
        const found = `select ${columnsOf(names)}, version, true as current from ${memories} where ${where}`;
        const older = conditionOf(where, (inner) => {
          inner.and(`${inner.inShard('v.')} and v.id = ${where.bind(located.id)}`);
          if (before !== undefined) inner.and(`v.version < ${where.bind(before)}`);
          whereWithin(inner, located, 'v.scope');
        });
        const page = firstWithin(
          `select v.*, ${BYTES} as bytes from ${versions} v where ${older} order by v.version desc limit ${where.bind(limit)}`,
          'version desc',
          where.bind(max_bytes),
        );
        const text = `with found as (${found}) select * from found
           union all select ${columnsOf(names, 'null')}, version, false from ${page} as v where exists (select from found)
           order by current desc, version desc`;
        return { statement: statement('small', text), values: where.values };
      });
      if (!current) return undefined;
      return {
        current: toMemory(current, model),
        version: current.version as number,
        versions: rows.map(toVersion),
      };
    },

    async purge(ref, call) {
      const [row] = await byId(ref, call, (located) => {
        const where = whereOne(located);
        // Changes nothing, but waits for other changes, and fails while the store is frozen.
        const changed = part(
          'changed',
          'bucket',
          'id',
          'user_id',
          'scope',
        )`update ${memories} set updated_at = updated_at where ${where} returning bucket, id, user_id, scope`;
        const purged = part(
          'purged',
        )`delete from ${versions} where ${where.inShard()} and id in (select ${changed.id} from ${changed}) returning 1`;
        const written = { action: 'purge', isChange: false } as const;
        const entry = audited && part('entry')`${insertChangeEntry(names, where.bind, { changed, ...written }, call)}`;
        const text = `${withParts([changed, purged, entry])} select (select count(*) from ${purged})::float8 as purged from ${changed}`;
        return { statement: statement('small', text), values: where.values };
      });
      return row && (row.purged as number);
    },

    async writtenIn({ user_id, after, limit, ...wanted }, call) {
      const where = conditions(names.placement.shardOf(user_id));
      where.and(where.inShard('m.'));
      where.and(`m.user_id = ${where.bind(user_id)}`);
      if (after !== undefined) where.and(`m.id > ${where.bind(after)}`);
      const matches = matching(where, wanted);
      const rows = await run(
        'heavy',
        `select id from ${memories} m where ${where} and (${matches('m')} or exists (
           select from ${versions} v where v.id = m.id and ${names.placement.sameBucket('v', 'm')} and ${matches('v')}))
         order by id limit ${where.bind(limit)}`,
        where.values,
        call,
      );
      return rows.map(({ id }) => id as string);
    },
  };
}

/** SQL that tells whether a version was written since this time, by this key. Compares texts: no content makes it fail. */
function matching({ bind }: Conditions, { since, key }: Pick<WrittenQuery, 'since' | 'key'>) {
  const from = bind(since);
  const by = typeof key === 'string' ? bind(key) : undefined;
  return (table: string): string => {
    const origin = `${table}.extensions->'${ORIGIN}'`;
    const at = `coalesce(${origin}->>'at', to_char(${table}.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) collate "C"`;
    const isBy = key === null ? `${origin} is not null and ${origin}->>'key' is null` : `${origin}->>'key' = ${by}`;
    return [`${at} >= ${from}`, ...(key === undefined ? [] : [isBy])].join(' and ');
  };
}
