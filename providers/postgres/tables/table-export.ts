import {
  analyseLater,
  type Call,
  type ExportedMemory,
  type ExportPart,
  type ExportQuery,
  type ImportRequest,
  type MemoryVersion,
  type Provider,
  upToBytes,
  type VersionOptions,
} from '#provider';
import type { Row, Run } from '../client/connections.ts';
import type { Buckets } from '../scaling/placement.ts';
import { allShards, placeAfter, placeIn } from '../scaling/shards.ts';
import { conditions, firstWithin } from '../sql/conditions.ts';
import { toKeys, toTextArray } from '../sql/values.ts';
import { insertChangeEntry } from './audit-log.ts';
import { enqueue } from './ingestion-queue.ts';
import { BYTES, COLUMN_NAMES, columnsOf, queueStatus, toMemory } from './memory-rows.ts';
import type { Names } from './names.ts';
import { countAgain } from './user-usage.ts';
import { toVersion } from './versions.ts';

interface TransferOptions {
  readonly model: string | null;
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

/** The same of a version. */
const { keywords: _, ...OF_VERSION } = COLUMNS;
const VERSION_COLUMNS = { ...OF_VERSION, replaced_at: 'timestamptz' };

/** What is stored already, by id. */
const storedOf = async (names: Names, run: Run, ids: readonly string[], call: Call) => {
  const rows = await run(
    'small',
    `select id, user_id, scope, bucket, version from ${names.memories} where id = any($1::text[])`,
    [ids],
    call,
  );
  return new Map(rows.map((row) => [row.id as string, row]));
};

/** Moves memories out of the tables, as they are. */
export function createExport(
  names: Names,
  run: Run,
  { model, versions: kept }: Pick<TransferOptions, 'model' | 'versions'>,
): Required<Pick<Provider, 'export'>> {
  /** A shard that is split later is read as one, which asks two. */
  let shards: Promise<Buckets[]> | undefined;
  type Query = Omit<ExportQuery, 'after'>;
  /** Memories of a shard after this id. */
  const read = async (
    shard: Buckets,
    after: string,
    { ids, user_id, since, vectors, versions, limit, max_bytes }: Query,
    call: Call,
  ) => {
    const where = conditions(shard);
    where.and(where.inShard());
    where.and(`id > ${where.bind(after)}`);
    if (ids) where.and(`id = any(${where.bind(toTextArray(ids))}::text[])`);
    if (user_id !== undefined) where.and(`user_id = ${where.bind(user_id)}`);
    if (since !== undefined) where.and(`updated_at >= ${where.bind(since)}::timestamptz`);
    const all = `select m.*, ${BYTES} as bytes from ${names.memories} m where ${where} order by id limit ${where.bind(limit)}`;
    const rows = await run(
      'heavy',
      `select ${columnsOf(names, queueStatus(names, where.inShard()))}, version, ${vectors ? `${names.embedding}::real[]` : 'null'} as vector
       from ${firstWithin(all, 'id', where.bind(max_bytes))} as m order by id`,
      where.values,
      call,
    );
    return rows.map((row) => ({
      memory: toMemory(row, model),
      vector: row.vector === null ? null : Float32Array.from(row.vector as number[]),
      ...(versions && { version: row.version as number }),
    }));
  };
  /** The items with their versions: of each the newest, up to the first that exceeds `max_bytes`. Items beyond it are left out. */
  const withVersions = async (
    shard: Buckets,
    items: readonly ExportedMemory[],
    { versions, max_bytes }: Query,
    call: Call,
  ) => {
    if (!versions || !kept || items.length === 0) return items;
    const where = conditions(shard);
    where.and(where.inShard());
    where.and(`id = any(${where.bind(toTextArray(items.map(({ memory }) => memory.id)))}::text[])`);
    const max = `${where.bind(max_bytes)}::int8`;
    const own = `select v.*, ${BYTES} as bytes, sum(${BYTES}) over (partition by bucket, id order by version desc) as own,
        count(*) over (partition by bucket, id)::int4 as kept from ${names.versions} v where ${where}`;
    const all = `select *, sum(bytes) over (order by id, version desc) as total from (${own}) as sized where own - bytes <= ${max}`;
    const rows = await run(
      'heavy',
      `select ${columnsOf(names, 'null')}, version, kept, total > ${max} as beyond from (${all}) as summed where total - bytes <= ${max}
       order by id, version desc`,
      where.values,
      call,
    );
    const byId = new Map<string, MemoryVersion[]>(items.map(({ memory }) => [memory.id, []]));
    for (const row of rows) byId.get(row.id as string)?.push(toVersion(row));
    const counts = new Map(rows.map(({ id, kept }) => [id, kept as number]));
    const beyond = rows.find((row) => row.beyond)?.id;
    const end = items.findIndex(({ memory }) => memory.id === beyond);
    return items.slice(0, end < 0 ? items.length : Math.max(1, end)).map((item) => {
      const versions = byId.get(item.memory.id) as MemoryVersion[];
      return { ...item, versions, versions_left_out: (counts.get(item.memory.id) ?? 0) - versions.length };
    });
  };
  /** On Citus: from all shards that have some of these at once. A request for each shard would make a few ids cost as many. */
  const readIds = async (after: string, ids: readonly string[], query: Query, call: Call): Promise<ExportPart> => {
    const stored = [...(await storedOf(names, run, ids, call))].filter(([id]) => compareBytes(id as string, after) > 0);
    const buckets = new Set(stored.map(([, row]) => row.bucket as number));
    const parts = await Promise.all([...buckets].map((bucket) => read([bucket], after, { ...query, ids }, call)));
    const found = parts.flat().sort((a, b) => compareBytes(a.memory.id, b.memory.id));
    const page = upToBytes(found.slice(0, query.limit), query.max_bytes, ({ memory }) => memory);
    const items = await withVersions([...buckets], page, query, call);
    return { items, next: items.length < stored.length ? items.at(-1)?.memory.id : undefined };
  };

  return {
    async export({ after = '', ...query }: ExportQuery, call): Promise<ExportPart> {
      const { ids, user_id } = query;
      if (ids && names.placement.distributed) return readIds(after, ids, query, call);
      shards ??= allShards(names, (text, values) => run('small', text, values, call));
      const { shard, id, next } = placeIn(
        user_id === undefined || !names.placement.distributed ? await shards : [[names.placement.bucketOf(user_id)]],
        after,
      );
      const items = await withVersions(shard, await read(shard, id, query, call), query, call);
      const last = items.at(-1)?.memory.id;
      return { items, next: last === undefined ? next : placeAfter(shard, last) };
    },
  };
}

/** Moves memories into the tables, as they are. */
export function createImport(
  names: Names,
  run: Run,
  { later, audited, versions: kept, counted }: Omit<TransferOptions, 'model'>,
): Required<Pick<Provider, 'import'>> {
  const columns = Object.keys(COLUMNS).join(', ');
  const stored = `${columns}, ${names.embedding}`;
  // Not the bucket: it is the same, and Citus rejects a change of it.
  const replaced = [...Object.keys(COLUMNS).filter((column) => column !== 'bucket'), names.embedding];
  const id = names.placement.key('id');
  /** What may be replaced. Read first: Citus runs the parts one after another, and each sees the changes of those before it. */
  const before = (buckets: string) => `before as materialized (
      select m.bucket, m.version, ${columnsIn('m')} from ${names.memories} m join moved using (bucket, id)
      where m.version = moved.replaces and ${names.placement.inShards(buckets, 'm.')}),`;
  /** What was replaced, and versions that come along with numbers that are not there yet; without those whose numbers are beyond the limit. */
  const keeping = ({ versions, buckets }: Bound, max: number) => `, kept as (
      insert into ${names.versions} (bucket, version, ${COLUMN_NAMES}, replaced_at)
      select before.*, now() from before join changed using (bucket, id) where before.version >= changed.version - ${max}),
    added as (
      insert into ${names.versions} (bucket, version, ${COLUMN_NAMES}, replaced_at)
      select v.bucket, v.version, ${columnsIn('v')}, v.replaced_at
      from json_to_recordset(${versions}::json) as v (${typesOf(VERSION_COLUMNS)}) join changed using (bucket, id)
      where v.version < changed.version on conflict (${id}, version) do nothing),
    dropped as (
      delete from ${names.versions} v using changed
      where v.bucket = changed.bucket and v.id = changed.id and v.version < changed.version - ${max} and ${names.placement.inShards(buckets, 'v.')})`;
  /** A memory is replaced only if it still has the number that was read, so that what is kept is what was replaced. */
  const replacing = (numbers: string) => `update set (${replaced.join(', ')}) =
      (${replaced.map((column) => `excluded.${column}`).join(', ')})
    where old.user_id = excluded.user_id and old.version = (${numbers}::jsonb->>old.id)::int4`;
  const storing = (bound: Bound, entry: string) => `with moved as (
      select * from json_to_recordset(${bound.rows}::json) as m (${typesOf(COLUMNS)}, replaces int4, vector text, left_scopes text[])),
    ${kept ? before(bound.buckets) : ''} changed as (
      insert into ${names.memories} as old (${stored}, large)
      select ${columns}, vector::${names.halfvec},
        user_id in (select user_id from ${names.largeUsers} where ${names.placement.inShards(bound.buckets)} and user_id = any(${bound.users}))
      from moved order by id on conflict (${id}) do ${bound.numbers ? replacing(bound.numbers) : 'nothing'}
      returning bucket, id, user_id, scope, version, ${names.embedding} is null as bare)
    ${later ? `, bare as (select bucket, id from changed where bare), ${enqueue(names, 'bare')}` : ''}
    ${kept ? keeping(bound, kept.max) : ''}
    ${audited ? `, entry as (${entry})` : ''}
    ${counted ? `, ${countAgain(names)}` : ''}
    select id from changed`;

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
    const bound = {
      rows: bind(JSON.stringify(rows)),
      users: bind(rows.map(({ user_id }) => user_id)),
      buckets: names.placement.distributed ? bind(rows.map(({ bucket }) => bucket)) : '',
      numbers: replace ? bind(JSON.stringify(numbers)) : undefined,
      versions: kept ? bind(JSON.stringify(versions)) : '',
    };
    const left = replace ? '(select left_scopes from moved where moved.id = changed.id)' : undefined;
    const entry = audited ? insertChangeEntry(names, bind, { action: 'import', left }, call) : '';
    return (await run('small', storing(bound, entry), values, call)).map(({ id }) => id as string);
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

const columnsIn = (table: string): string =>
  COLUMN_NAMES.split(', ')
    .map((column) => `${table}.${column}`)
    .join(', ');

/** Ids are in the order of their bytes. */
const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
