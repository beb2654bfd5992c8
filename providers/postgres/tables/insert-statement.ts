import { type Call, type KeyClaim, MAX_BATCH_SIZE, type Memory, type Vector } from '#provider';
import type { Query, Statement } from '../client/connections.ts';
import { conditions } from '../sql/conditions.ts';
import type { WithPart } from '../sql/parts.ts';
import { toBigintArray, toHalfvec, toTextArray } from '../sql/values.ts';
import type { MakeChange } from './change-statement.ts';
import { claimKey } from './idempotency.ts';
import { enqueue } from './ingestion-queue.ts';
import type { Names } from './names.ts';
import { type Room, takeRoom } from './user-usage.ts';

export interface Insert {
  readonly memory: Memory;
  /** Of its user. */
  readonly bucket: number;
  /** Null: without a vector, or not until the ingestion queue has computed it, as the memory's status says. */
  readonly vector: Vector;
  /** Keys of the content's terms. */
  readonly keywords: readonly number[];
  /** The insert only happens if it claims this key; undefined: it needs none. */
  readonly key?: KeyClaim | undefined;
}

/** The statements that add memories. */
export function createInserts(names: Names, audited: boolean, change: MakeChange) {
  const columns = `bucket, id, user_id, content, scope, tags, source, confidence, created_at, updated_at, valid_from, valid_to, supersedes, extensions,
   keywords, ${names.embedding}, large`;
  /** The inserts without a key, by the status of their memories. Making one takes a twentieth of the processor time of an add. */
  const known = new Map<Memory['status'], Statement>();
  const queueing = (memories: readonly Memory[]) =>
    memories.some(({ status }) => status === 'queued')
      ? (changed: WithPart<'bucket' | 'id'>) => [enqueue(names, changed)]
      : undefined;

  return {
    /** Inserts several. Returns no row if it does not claim the key, or there is no room, and inserts none. */
    insertAll(inserts: readonly Insert[], key: KeyClaim | undefined, call: Call, room?: Room): Query {
      const where = conditions();
      const rows = inserts.map((insert) => insertedValues(insert, `{${insert.keywords}}`));
      const values = INSERTED_TYPES.map((type, i) => `${where.bind(rows.map((row) => row[i]))}::${type}[]`);
      const [, , users] = values;
      // Binary forms cannot be elements of a parameter. Few lengths, so few different statements.
      const vectors = Array.from(
        { length: VECTOR_COUNTS.find((count) => count >= rows.length) ?? rows.length },
        (_, i) => where.bind(rows[i]?.at(-1) ?? null),
      );
      const memories = inserts.map(({ memory }) => memory);
      const claim = key && ((free?: WithPart) => claimKey(names, where.bind, { ...key, free }, memories));
      const claimed = room || !claim ? [] : [claim()];
      const { first, required } = room
        ? takeRoom(names, where.bind, room, claim)
        : { first: claimed, required: claimed };
      const text = `insert into ${names.memories} (${columns})
         select bucket, id, user_id, content, scope, tags::text[], source, confidence, created_at, created_at, valid_from, valid_to,
           supersedes::text[], extensions, keywords::bigint[], embedding::${names.halfvec},
           user_id in (select user_id from ${names.largeUsers} where ${names.placement.inShards('$1')} and user_id = any(${users}))
         from unnest(${values.join(', ')}, array[${vectors.join(', ')}]::${names.halfvec}[])
           as new (bucket, id, user_id, content, scope, tags, source, confidence, created_at,
             valid_from, valid_to, supersedes, extensions, keywords, embedding)
         ${required.map((each) => `cross join ${each}`).join(' ')} where id is not null`;
      return change(where, { action: 'add', call, first, text, after: queueing(memories) });
    },

    /** Returns a row if it inserted one. */
    insert(insert: Insert, call: Call): Query {
      const { memory, key } = insert;
      const values = insertedValues(insert);
      if (audited) values.push(new Date().toISOString(), call.caller.app, call.requestId);
      const statement = key ? undefined : known.get(memory.status);
      if (statement) return { statement, values };
      const where = conditions();
      where.values.push(...values);
      const claimed = key && claimKey(names, where.bind, key, [memory]);
      const text = `insert into ${names.memories} (${columns})
         select $1::int2, $2::text, $3::text, $4::text, $5::text, $6::text[], $7::jsonb, $8::float8, $9::timestamptz, $9::timestamptz,
           $10::timestamptz, $11::timestamptz, $12::text[], $13::jsonb, $14::bigint[], $15::${names.halfvec},
           exists (select from ${names.largeUsers} where ${names.placement.inShard()} and user_id = $3) ${claimed ? `from ${claimed} where ${claimed.memory_id} = $2` : ''}`;
      const first = claimed && [claimed];
      // They stand behind those of `insertedValues`.
      const parameters = ['$16', '$17', '$18'] as const;
      const made = change(where, { action: 'add', call, first, text, after: queueing([memory]), parameters });
      if (!key) known.set(memory.status, made.statement);
      return made;
    },
  };
}

/** Without `updated_at`, which equals `created_at`. */
const insertedValues = (
  { memory, bucket, vector, keywords }: Insert,
  keys: Buffer | string = toBigintArray(keywords),
): unknown[] => [
  bucket,
  memory.id,
  memory.user_id,
  memory.content,
  memory.scope,
  toTextArray(memory.tags),
  memory.source && JSON.stringify(memory.source),
  memory.confidence,
  memory.created_at,
  memory.valid_from,
  memory.valid_to,
  toTextArray(memory.supersedes),
  JSON.stringify(memory.extensions),
  keys,
  vector ? toHalfvec(vector) : null,
];

/** Their types in a batch, without the vector. Arrays are texts, because those of a batch differ in length. */
const INSERTED_TYPES = [
  ...['int2', 'text', 'text', 'text', 'text', 'text', 'jsonb', 'float8', 'timestamptz'],
  ...['timestamptz', 'timestamptz', 'text', 'jsonb', 'text'],
];

/** Vectors of a batch's statement; those beyond its memories are null. */
const VECTOR_COUNTS = [4, 20, MAX_BATCH_SIZE];
