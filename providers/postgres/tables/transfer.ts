import type { MovedMemory, Provider, ScanPart, ScanQuery } from '#contract';
import type { Run } from '../client/connections.ts';
import { conditions } from './conditions.ts';
import { enqueue } from './ingestion-queue.ts';
import { bytesOf, columnsOf, firstWithin, toMemory } from './memory-rows.ts';
import type { Names } from './names.ts';

interface TransferOptions {
  readonly model: string | null;
  /** Whether the ingestion queue computes the vectors of memories that come without. */
  readonly later: boolean;
  /** Keys of a content's terms. */
  keywordsOf(memory: MovedMemory['memory'], call: Parameters<Run>[2]): Promise<number[]>;
}

/** Columns that are stored as they are, with their types. */
const COLUMNS = {
  ...{ id: 'text', user_id: 'text', content: 'text', scope: 'text', tags: 'text[]', source: 'jsonb' },
  ...{ confidence: 'float8', created_at: 'timestamptz', updated_at: 'timestamptz', valid_from: 'timestamptz' },
  ...{ valid_to: 'timestamptz', supersedes: 'text[]', extensions: 'jsonb', keywords: 'bigint[]' },
} as const;

/** Moves memories out of the tables and into them, as they are. */
export function createTransfer(
  names: Names,
  run: Run,
  { model, later, keywordsOf }: TransferOptions,
): Required<Pick<Provider, 'scan' | 'restore'>> {
  const columns = Object.keys(COLUMNS).join(', ');
  const stored = `${columns}, ${names.embedding}`;
  const restoring = (replace: boolean) => `with moved as (
      select * from json_to_recordset($1::json) as m (${Object.entries(COLUMNS).map((column) => column.join(' '))}, vector text)),
    stored as (
      insert into ${names.memories} as old (${stored}, large)
      select ${columns}, vector::${names.halfvec}, exists (select from ${names.largeUsers} l where l.user_id = moved.user_id)
      from moved order by id
      on conflict (id) do ${
        replace
          ? `update set (${stored}) = (${stored.replaceAll(/^|(?<=, )/g, 'excluded.')}) where old.user_id = excluded.user_id`
          : 'nothing'
      } returning id, ${names.embedding} is null as bare)
    ${later ? `, changed as (select id from stored where bare), ${enqueue(names)}` : ''}
    select id from stored`;

  return {
    async scan({ after, user_id, since, limit, max_bytes }: ScanQuery, call): Promise<ScanPart> {
      const where = conditions();
      where.and(`id > ${where.bind(after ?? '')}`);
      if (user_id !== undefined) where.and(`user_id = ${where.bind(user_id)}`);
      if (since !== undefined) where.and(`updated_at >= ${where.bind(since)}::timestamptz`);
      const all = `select m.*, ${bytesOf()} as bytes from ${names.memories} m where ${where} order by id limit ${where.bind(limit)}`;
      const rows = await run(
        `select ${columnsOf(names)}, ${names.embedding}::real[] as vector
         from ${firstWithin(all, 'id', where.bind(max_bytes))} as m order by id`,
        where.values,
        call,
      );
      const items = rows.map((row) => ({
        memory: toMemory(row, model),
        vector: row.vector === null ? null : Float32Array.from(row.vector as number[]),
      }));
      return { items, next: items.at(-1)?.memory.id };
    },
    async restore(items, replace, call) {
      const rows = [];
      for (const { memory, vector } of items) {
        const text = vector && `[${vector.join()}]`;
        rows.push({ ...memory, keywords: await keywordsOf(memory, call), vector: text });
      }
      const found = new Set((await run(restoring(replace), [JSON.stringify(rows)], call)).map(({ id }) => id));
      return items.map(({ memory }) => found.has(memory.id));
    },
  };
}
