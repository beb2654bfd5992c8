import {
  type Call,
  type ExportedMemory,
  type ExportPart,
  type ExportQuery,
  type MemoryVersion,
  type Provider,
  upToBytes,
  type VersionOptions,
} from '#provider';
import type { Run } from '../client/connections.ts';
import type { Buckets } from '../scaling/placement.ts';
import { allShards, placeAfter, placeIn } from '../scaling/shards.ts';
import { conditions, firstWithin } from '../sql/conditions.ts';
import { toTextArray } from '../sql/values.ts';
import { BYTES, columnsOf, queueStatus, toMemory } from './memory-rows.ts';
import type { Names } from './names.ts';
import { toVersion } from './versions.ts';

/** What is stored already, by id. */
export const storedOf = async (names: Names, run: Run, ids: readonly string[], call: Call) => {
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
  { model, versions: kept }: { readonly model: string | null; readonly versions: VersionOptions | undefined },
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
        user_id === undefined ? await shards : [names.placement.shardsOf([user_id])],
        after,
      );
      const items = await withVersions(shard, await read(shard, id, query, call), query, call);
      const last = items.at(-1)?.memory.id;
      return { items, next: last === undefined ? next : placeAfter(shard, last) };
    },
  };
}

/** Ids are in the order of their bytes. */
const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
