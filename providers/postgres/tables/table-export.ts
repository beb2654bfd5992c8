import { analyseLater, type Call, type ExportPart, type ExportQuery, type Provider, upToBytes } from '#provider';
import type { Row, Run } from '../client/connections.ts';
import { toKeys, toTextArray } from '../values.ts';
import { insertChangeEntry } from './audit-log.ts';
import { conditions, inShards } from './conditions.ts';
import { enqueue } from './ingestion-queue.ts';
import { BYTES, columnsOf, firstWithin, queueStatus, toMemory } from './memory-rows.ts';
import type { Names } from './names.ts';
import { allShards, type Shard } from './shards.ts';

interface TransferOptions {
  readonly model: string | null;
  /** Whether the ingestion queue computes the vectors of memories that come without. */
  readonly later: boolean;
  /** Whether each memory that is stored gets an audit entry, in the statement that stores it. */
  readonly audited: boolean;
}

/** Columns that are stored as they are, with their types. */
const COLUMNS = {
  ...{ bucket: 'int2', id: 'text', user_id: 'text', content: 'text', scope: 'text', tags: 'text[]', source: 'jsonb' },
  ...{ confidence: 'float8', created_at: 'timestamptz', updated_at: 'timestamptz', valid_from: 'timestamptz' },
  ...{ valid_to: 'timestamptz', supersedes: 'text[]', extensions: 'jsonb', keywords: 'bigint[]' },
} as const;

/** Moves memories out of the tables and into them, as they are. */
export function createExport(
  names: Names,
  run: Run,
  { model, later, audited }: TransferOptions,
): Required<Pick<Provider, 'export' | 'import'>> {
  const columns = Object.keys(COLUMNS).join(', ');
  const stored = `${columns}, ${names.embedding}`;
  // Not the bucket: it is the same, and Citus rejects a change of it.
  const replaced = [...Object.keys(COLUMNS).filter((column) => column !== 'bucket'), names.embedding];
  const restoring = (replace: boolean, entry: string) => `with moved as (
      select * from json_to_recordset($1::json) as m (${Object.entries(COLUMNS).map((column) => column.join(' '))}, vector text, left_scopes text[])),
    changed as (
      insert into ${names.memories} as old (${stored}, large)
      select ${columns}, vector::${names.halfvec},
        user_id in (select user_id from ${names.largeUsers} where ${inShards(names, '$3')} and user_id = any($2))
      from moved order by id
      on conflict (${names.distributed ? 'bucket, ' : ''}id) do ${
        replace
          ? `update set (${replaced.join(', ')}) = (${replaced.map((column) => `excluded.${column}`).join(', ')}) where old.user_id = excluded.user_id`
          : 'nothing'
      } returning bucket, id, user_id, scope, ${names.embedding} is null as bare)
    ${later ? `, bare as (select bucket, id from changed where bare), ${enqueue(names, 'bare')}` : ''}
    ${audited ? `, entry as (${entry})` : ''}
    select id from changed`;

  /** A shard that is split later is read as one, which asks two. */
  let shards: Promise<Shard[]> | undefined;
  /** What is stored already, by id. */
  const storedOf = async (ids: readonly string[], call: Call) => {
    const rows = await run(`select id, bucket, scope from ${names.memories} where id = any($1::text[])`, [ids], call);
    return new Map(rows.map((row) => [row.id, row]));
  };

  type Query = Omit<ExportQuery, 'after'>;
  /** Memories of a shard after this id. */
  const read = async (
    shard: Shard,
    after: string,
    { ids, user_id, since, vectors, limit, max_bytes }: Query,
    call: Call,
  ) => {
    const where = conditions(shard);
    where.and(inShards(names));
    where.and(`id > ${where.bind(after)}`);
    if (ids) where.and(`id = any(${where.bind(toTextArray(ids))}::text[])`);
    if (user_id !== undefined) where.and(`user_id = ${where.bind(user_id)}`);
    if (since !== undefined) where.and(`updated_at >= ${where.bind(since)}::timestamptz`);
    const all = `select m.*, ${BYTES} as bytes from ${names.memories} m where ${where} order by id limit ${where.bind(limit)}`;
    const rows = await run(
      `select ${columnsOf(names, queueStatus(names, inShards(names)))}, ${vectors ? `${names.embedding}::real[]` : 'null'} as vector
       from ${firstWithin(all, 'id', where.bind(max_bytes))} as m order by id`,
      where.values,
      call,
    );
    return rows.map((row) => ({
      memory: toMemory(row, model),
      vector: row.vector === null ? null : Float32Array.from(row.vector as number[]),
    }));
  };
  /** On Citus: from all shards that have some of these at once. A request for each shard would make a few ids cost as many. */
  const readIds = async (after: string, ids: readonly string[], query: Query, call: Call): Promise<ExportPart> => {
    const stored = [...(await storedOf(ids, call))].filter(([id]) => compareBytes(id as string, after) > 0);
    const buckets = new Set(stored.map(([, row]) => row.bucket as number));
    const parts = await Promise.all([...buckets].map((bucket) => read([bucket], after, { ...query, ids }, call)));
    const found = parts.flat().sort((a, b) => compareBytes(a.memory.id, b.memory.id));
    const items = upToBytes(found.slice(0, query.limit), query.max_bytes, ({ memory }) => memory);
    return { items, next: items.length < stored.length ? items.at(-1)?.memory.id : undefined };
  };

  return {
    async export({ after = '', ...query }: ExportQuery, call): Promise<ExportPart> {
      const { ids, user_id } = query;
      if (ids && names.distributed) return readIds(after, ids, query, call);
      shards ??= allShards(names, (text, values) => run(text, values, call));
      const { shard, id, next } = placeIn(
        user_id === undefined || !names.distributed ? await shards : [[names.bucketOf(user_id)]],
        after,
      );
      const items = await read(shard, id, query, call);
      const last = items.at(-1)?.memory.id;
      return { items, next: last === undefined ? next : placeAfter(shard, last) };
    },
    async import({ items, replace }, call) {
      const rows = [];
      // On a single server the ids are unique by themselves.
      const ids = names.distributed || (audited && replace) ? items.map(({ memory }) => memory.id) : [];
      const stored = ids.length > 0 ? await storedOf(ids, call) : new Map<unknown, Row>();
      for (const { memory, vector } of items) {
        const bucket = names.bucketOf(memory.user_id);
        const old = stored.get(memory.id);
        // Another user's.
        if (names.distributed && old && old.bucket !== bucket) continue;
        const text = vector && `[${vector.join()}]`;
        const left_scopes = old && old.scope !== null && old.scope !== memory.scope ? [old.scope] : null;
        const keywords = toKeys(memory.user_id, await analyseLater(memory.content, call));
        rows.push({ ...memory, bucket, keywords, vector: text, left_scopes });
      }
      const { bind, values } = conditions();
      values.push(
        JSON.stringify(rows),
        rows.map(({ user_id }) => user_id),
      );
      if (names.distributed) values.push(rows.map(({ bucket }) => bucket));
      const left = replace ? '(select left_scopes from moved where moved.id = changed.id)' : undefined;
      const entry = audited ? insertChangeEntry(names, bind, { action: 'import', left }, call) : '';
      const found = new Set((await run(restoring(replace, entry), values, call)).map(({ id }) => id));
      return items.map(({ memory }) => found.has(memory.id));
    },
  };
}

/** Ids are in the order of their bytes. */
const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** A place of a scan on Citus: the first bucket of a shard, and the last id that was read there. */
const PLACE = /^(\d+)\.(.*)$/s;

const placeAfter = (shard: Shard, id: string): string => (shard ? `${shard[0]}.${id}` : id);

/** `next`: where to go on if the shard has no more. */
function placeIn(shards: readonly Shard[], after: string) {
  const [first, ...others] = shards;
  if (!first) return { shard: first, id: after, next: undefined };
  const [, bucket = first[0], id = ''] = PLACE.exec(after) ?? [];
  const at = Math.max(
    0,
    shards.findIndex((shard) => shard?.includes(Number(bucket))),
  );
  const following = [first, ...others][at + 1];
  return { shard: shards[at], id, next: following && placeAfter(following, '') };
}
