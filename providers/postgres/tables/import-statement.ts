import { analyseLater, type Call, type ImportRequest, type Provider, type VersionOptions } from '#provider';
import type { Row, Run } from '../client/connections.ts';
import { conditions } from '../sql/conditions.ts';
import { materialized, part, type WithPart, withParts } from '../sql/parts.ts';
import { toKeys } from '../sql/values.ts';
import { type EntryColumn, insertChangeEntry } from './change-statement.ts';
import { storedOf } from './export-statement.ts';
import { enqueue } from './ingestion-queue.ts';
import { COLUMN_NAMES, RECORD } from './memory-rows.ts';
import type { Names } from './names.ts';
import { countAgain } from './user-usage.ts';
import type { Before } from './versions.ts';

interface ImportOptions {
  /** Whether the ingestion queue computes the vectors of memories that come without. */
  readonly later: boolean;
  /** Whether each memory that is stored gets an audit entry, in the statement that stores it. */
  readonly audited: boolean;
  /** Undefined: no versions are kept. */
  readonly versions: VersionOptions | undefined;
  /** Whether users have limits, for which what is stored counts. */
  readonly counted: boolean;
}

/** Columns that are stored as they are, with their types. */
const COLUMNS = {
  ...{ bucket: 'int2', id: 'text', user_id: 'text', content: 'text', scope: 'text', tags: 'text[]', source: 'jsonb' },
  ...{ confidence: 'float8', created_at: 'timestamptz', updated_at: 'timestamptz', valid_from: 'timestamptz' },
  ...{ valid_to: 'timestamptz', supersedes: 'text[]', extensions: 'jsonb', keywords: 'bigint[]', version: 'int4' },
} as const;
const STORED = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];

/** The same of a version. */
const { keywords: _, ...OF_VERSION } = COLUMNS;
const VERSION_COLUMNS = { ...OF_VERSION, replaced_at: 'timestamptz' };

/** Moves memories into the tables, as they are. */
export function createImport(
  names: Names,
  run: Run,
  { later, audited, versions: kept, counted }: ImportOptions,
): Required<Pick<Provider, 'import'>> {
  const columns = STORED.join(', ');
  const stored = `${columns}, ${names.embedding}`;
  // Not the bucket: it is the same, and Citus rejects a change of it.
  const replaced = [...STORED.filter((column) => column !== 'bucket'), names.embedding];
  const id = names.placement.key('id');
  /** A memory is replaced only if it still has the number that was read, so that what is kept is what was replaced. */
  const replacing = (numbers: string) => `update set (${replaced.join(', ')}) =
      (${replaced.map((column) => `excluded.${column}`).join(', ')})
    where old.user_id = excluded.user_id and old.version = (${numbers}::jsonb->>old.id)::int4`;
  /** The statement that stores. `entry`: makes the audit entries. */
  const storing = (
    bound: Bound,
    entry: (changed: WithPart<EntryColumn>, moved: WithPart<'id' | 'left_scopes'>) => string,
  ) => {
    const moved = part(
      'moved',
      ...STORED,
      'replaces',
      'vector',
      'left_scopes',
    )`select * from json_to_recordset(${bound.rows}::json) as m (${typesOf(COLUMNS)}, replaces int4, vector text, left_scopes text[])`;
    // What may be replaced. Read first: Citus runs the parts one after another, and each sees the changes of those before it.
    const before = materialized(
      'before',
      'bucket',
      'version',
      ...RECORD,
    )`select m.bucket, m.version, ${columnsIn('m')} from ${names.memories} m join ${moved} using (bucket, id)
      where m.version = ${moved}.${moved.replaces} and ${names.placement.inShards(bound.buckets, 'm.')}`;
    const changed = part(
      'changed',
      'bucket',
      'id',
      'user_id',
      'scope',
      'version',
      'bare',
    )`insert into ${names.memories} as old (${stored}, large)
      select ${columns}, ${moved.vector}::${names.halfvec},
        user_id in (select user_id from ${names.largeUsers} where ${names.placement.inShards(bound.buckets)} and user_id = any(${bound.users}))
      from ${moved} order by ${moved.id} on conflict (${id}) do ${bound.numbers ? replacing(bound.numbers) : 'nothing'}
      returning bucket, id, user_id, scope, version, ${names.embedding} is null as bare`;
    const bare = part('bare', 'bucket', 'id')`select bucket, id from ${changed} where ${changed.bare}`;
    const parts = [
      moved,
      kept && before,
      changed,
      ...(later ? [bare, enqueue(names, bare)] : []),
      ...(kept ? keeping(bound, kept.max, before, changed) : []),
      audited && part('entry')`${entry(changed, moved)}`,
      counted && countAgain(names, changed),
    ];
    return `${withParts(parts)} select ${changed.id} from ${changed}`;
  };
  /** What was replaced, and versions that come along with numbers that are not there yet; without those whose numbers are beyond the limit. */
  const keeping = (
    { versions, buckets }: Bound,
    max: number,
    before: Before,
    changed: WithPart<'bucket' | 'id' | 'version'>,
  ) => [
    part('kept')`insert into ${names.versions} (bucket, version, ${COLUMN_NAMES}, replaced_at)
      select ${before}.*, now() from ${before} join ${changed} using (bucket, id) where ${before}.${before.version} >= ${changed}.${changed.version} - ${max}`,
    part('added')`insert into ${names.versions} (bucket, version, ${COLUMN_NAMES}, replaced_at)
      select v.bucket, v.version, ${columnsIn('v')}, v.replaced_at
      from json_to_recordset(${versions}::json) as v (${typesOf(VERSION_COLUMNS)}) join ${changed} using (bucket, id)
      where v.version < ${changed}.${changed.version} on conflict (${names.placement.key('id, version')}) do nothing`,
    part('dropped')`delete from ${names.versions} v using ${changed}
      where v.bucket = ${changed}.${changed.bucket} and v.id = ${changed}.${changed.id} and v.version < ${changed}.${changed.version} - ${max}
        and ${names.placement.inShards(buckets, 'v.')}`,
  ];

  /** Stores them, and returns the ids of those that it did. `stored`: what they replace. */
  const store = async (
    items: ImportRequest['items'],
    replace: boolean,
    stored: ReadonlyMap<string, Row>,
    call: Call,
  ): Promise<string[]> => {
    const rows = [];
    const versions = [];
    for (const { memory, vector, version = 1, versions: before = [] } of items) {
      const bucket = names.placement.bucketOf(memory.user_id);
      const old = stored.get(memory.id);
      const number = (old?.version as number | undefined) ?? 0;
      const current = Math.max(number + 1, version);
      rows.push({
        ...memory,
        bucket,
        keywords: toKeys(memory.user_id, await analyseLater(memory.content, call)),
        vector: vector && `[${vector.join()}]`,
        version: current,
        replaces: number,
        left_scopes: old && old.scope !== null && old.scope !== memory.scope ? [old.scope] : null,
      });
      for (const [i, one] of before.entries()) {
        if (kept && one.version < current - kept.max) break;
        // What is replaced has this number, and is kept.
        if (one.version === number) continue;
        versions.push({
          ...one.memory,
          bucket,
          version: one.version,
          replaced_at: (before[i - 1]?.memory ?? memory).updated_at,
        });
      }
    }
    const { bind, values } = conditions();
    const numbers = Object.fromEntries([...stored].map(([id, { version }]) => [id, version]));
    const shards = names.placement.shardsOf(rows.map(({ user_id }) => user_id));
    const bound = {
      rows: bind(JSON.stringify(rows)),
      users: bind(rows.map(({ user_id }) => user_id)),
      buckets: shards ? bind(shards) : '',
      numbers: replace ? bind(JSON.stringify(numbers)) : undefined,
      versions: kept ? bind(JSON.stringify(versions)) : '',
    };
    const text = storing(bound, (changed, moved) => {
      const left = `(select ${moved.left_scopes} from ${moved} where ${moved}.${moved.id} = ${changed}.${changed.id})`;
      return insertChangeEntry(names, bind, { changed, action: 'import', left: replace ? left : undefined }, call);
    });
    return (await run('small', text, values, call)).map(({ id }) => id as string);
  };

  return {
    async import({ items, replace }, call) {
      const found = new Set<string>();
      for (let rest = items; rest.length > 0; ) {
        const ids = rest.map(({ memory }) => memory.id);
        // On a single server the ids are unique by themselves.
        const stored =
          names.placement.distributed || replace ? await storedOf(names, run, ids, call) : new Map<string, Row>();
        const own = rest.filter(({ memory }) => {
          const old = stored.get(memory.id);
          return !old || (replace && old.user_id === memory.user_id);
        });
        const done = own.length > 0 ? await store(own, replace, stored, call) : [];
        for (const id of done) found.add(id);
        // What another request has stored or changed meanwhile is looked at again.
        rest = replace ? own.filter(({ memory }) => !found.has(memory.id)) : [];
        call.throwIfAborted();
      }
      return items.map(({ memory }) => found.has(memory.id));
    },
  };
}

/** The parameters of the statement that stores. */
interface Bound {
  readonly rows: string;
  readonly users: string;
  readonly buckets: string;
  /** Undefined: nothing is replaced. */
  readonly numbers: string | undefined;
  readonly versions: string;
}

const typesOf = (columns: Readonly<Record<string, string>>): string =>
  Object.entries(columns)
    .map((column) => column.join(' '))
    .join(', ');

const columnsIn = (table: string): string => RECORD.map((column) => `${table}.${column}`).join(', ');
