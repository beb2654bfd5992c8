import {
  type Call,
  type KeyClaim,
  type ListQuery,
  literalPrefix,
  MAX_BATCH_SIZE,
  MAX_EXTENSIONS,
  type Memory,
  type MemoryPatch,
  mergeExtensions,
  type NeighboursQuery,
  type ProtocolVerb,
  type Vector,
  type VersionOptions,
} from '#provider';
import { type Query, queriesOf, rememberStatements, type Statement, type Weight } from '../client/connections.ts';
import type { Located } from '../scaling/placement.ts';
import { type Conditions, conditionOf, conditions, firstWithin, whereWithin } from '../sql/conditions.ts';
import { toBigintArray, toHalfvec, toTextArray } from '../sql/values.ts';
import { changeEntryValues, insertChangeEntry } from './audit-log.ts';
import {
  CONVERSATION,
  UNINDEXED_USER,
  whereInTime,
  whereOne,
  whereScopeGlob,
  whereTags,
  whereTagsOfLargeUser,
  whereWritten,
} from './conditions.ts';
import { claimKey } from './idempotency.ts';
import { clearQueue, enqueue } from './ingestion-queue.ts';
import { BYTES, bytesAfter, COLUMN_NAMES, columnsOf, queueStatusOfMany } from './memory-rows.ts';
import type { Names } from './names.ts';
import { growContent, type Room, takeRoom } from './user-usage.ts';
import { dropVersions, keepVersion } from './versions.ts';

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

export interface Update {
  readonly patch: MemoryPatch;
  /** Of the new content; undefined exactly if the content does not change. */
  readonly keywords: readonly number[] | undefined;
  /** Of the new content; `later`: the ingestion queue computes it. Null: the content does not change, or there are no vectors. */
  readonly vector: Vector | 'later';
  /** Limit of the memory's size. A memory that is larger already must not grow. */
  readonly max_bytes: number;
  /** Of the user, for a new content; undefined: there are no limits. */
  readonly room?: Room | undefined;
}

interface Change {
  readonly action: ProtocolVerb;
  readonly call: Call;
  /** Part of a `with`, before the change. */
  readonly first?: string | undefined;
  readonly text: string;
  /** Part of a `with`, after the change, over the rows of `changed`. */
  readonly after?: string | undefined;
  /** What to return of each changed row. Default: only that it exists. */
  readonly columns?: string;
  /** The columns that `columns` reads. Default: those of an audit entry. */
  readonly row?: string;
  /** SQL of the scopes that the memories leave. */
  readonly left?: string | undefined;
}

/** The statements of the verbs. Texts differ only by the filters in use, so each is prepared once. */
export type Statements = ReturnType<typeof createStatements>;

/** `audited`: whether changes write audit entries. `versions`: undefined: no versions are kept. */
export function createStatements(
  names: Names,
  audited: boolean,
  versions?: VersionOptions,
  statement = rememberStatements(),
) {
  const query = queriesOf(statement);
  const columns = columnsOf(names);
  const listColumns = columnsOf(names, queueStatusOfMany(names));
  /** The first parameter of a list, after the bucket, is the limit of a content in bytes. */
  const shortColumns = columnsOf(
    names,
    queueStatusOfMany(names),
    names.placement.distributed ? '$2::float8' : '$1::float8',
  );
  const one = (ref: Located) => whereOne(ref);
  /** The same for a change, which checks the version. */
  const oneVersion = (ref: Located) => {
    const where = one(ref);
    if (ref.versions) where.and(`updated_at = any(${where.bind(toTextArray(ref.versions))}::timestamptz[])`);
    return where;
  };
  /** What an update does with the ingestion queue. The statement itself reads the queue as it was before. */
  const queueing = (vector: Update['vector']) => {
    if (vector === null) return { columns };
    if (vector === 'later') return { after: enqueue(names), columns: columnsOf(names, `'queued'`) };
    return { after: clearQueue(names), columns: columnsOf(names, 'null') };
  };
  /** The inserts without a key, by the status of their memories. Making one takes a twentieth of the processor time of an add. */
  const inserts = new Map<Memory['status'], Statement>();
  /** A change and its audit entry are one statement, so both or neither are kept. */
  const change = ({ bind, values }: Conditions, wanted: Change): Query => {
    const { action, call, first, text, after, columns = '1', row = 'id, user_id, scope', left } = wanted;
    // Measured: an add without a second part of the `with` costs a tenth less.
    const isLast = columns === '1';
    // Citus takes no insert at the top that reads what another part has inserted into its table.
    const isShort = !audited && !after && isLast && !(names.placement.distributed && first);
    if (isShort) return query('small', `${first ? `with ${first}` : ''} ${text} returning 1`, values);
    // Citus returns no functions of the columns that an update changes.
    const parts = [first, `changed as (${text} returning bucket, ${row})`, after];
    const changed = `with ${parts.filter((part) => part !== undefined).join(', ')}`;
    if (!audited) return query('small', `${changed} select ${columns} from changed`, values);
    const entry = insertChangeEntry(names, bind, { action, left }, call);
    if (isLast) return query('small', `${changed} ${entry} returning 1`, values);
    return query('small', `${changed}, entry as (${entry}) select ${columns} from changed`, values);
  };

  return {
    /** Inserts several. Returns no row if it does not claim the key, or there is no room, and inserts none. */
    insertAll(inserts: readonly Insert[], key: KeyClaim | undefined, call: Call, room?: Room): Query {
      const where = conditions();
      const rows = inserts.map((insert) => insertedValues(insert, `{${insert.keywords}}`));
      const columns = INSERTED_TYPES.map((type, i) => `${where.bind(rows.map((row) => row[i]))}::${type}[]`);
      const [, , users] = columns;
      // Binary forms cannot be elements of a parameter. Few lengths, so few different statements.
      const vectors = Array.from(
        { length: VECTOR_COUNTS.find((count) => count >= rows.length) ?? rows.length },
        (_, i) => where.bind(rows[i]?.at(-1) ?? null),
      );
      const memories = inserts.map(({ memory }) => memory);
      const text = `insert into ${names.memories} (${insertedColumns(names)})
         select bucket, id, user_id, content, scope, tags::text[], source, confidence, created_at, created_at, valid_from, valid_to,
           supersedes::text[], extensions, keywords::bigint[], embedding::${names.halfvec},
           user_id in (select user_id from ${names.largeUsers} where ${names.placement.inShards('$1')} and user_id = any(${users}))
         from unnest(${columns.join(', ')}, array[${vectors.join(', ')}]::${names.halfvec}[])
           as new (bucket, id, user_id, content, scope, tags, source, confidence, created_at,
             valid_from, valid_to, supersedes, extensions, keywords, embedding)
         ${key ? 'cross join claimed' : ''} ${room ? 'cross join used' : ''} where id is not null`;
      const claim = key && claimKey(names, where.bind, { ...key, afterRoom: room !== undefined }, memories);
      const first = room ? takeRoom(names, where.bind, room, claim) : claim;
      const after = inserts.some(({ memory }) => memory.status === 'queued') ? enqueue(names) : undefined;
      return change(where, { action: 'add', call, first, text, after });
    },

    /** Returns a row if it inserted one. */
    insert(insert: Insert, call: Call): Query {
      const { memory, key } = insert;
      const inserted = insertedValues(insert);
      const known = key ? undefined : inserts.get(memory.status);
      if (known) return { statement: known, values: audited ? [...inserted, ...changeEntryValues(call)] : inserted };
      const where = conditions();
      where.values.push(...inserted);
      const text = `insert into ${names.memories} (${insertedColumns(names)})
         select $1::int2, $2::text, $3::text, $4::text, $5::text, $6::text[], $7::jsonb, $8::float8, $9::timestamptz, $9::timestamptz,
           $10::timestamptz, $11::timestamptz, $12::text[], $13::jsonb, $14::bigint[], $15::${names.halfvec},
           exists (select from ${names.largeUsers} where ${names.placement.inShard()} and user_id = $3) ${key ? 'from claimed where memory_id = $2' : ''}`;
      const first = key && claimKey(names, where.bind, key, [memory]);
      const after = memory.status === 'queued' ? enqueue(names) : undefined;
      const made = change(where, { action: 'add', call, first, text, after });
      if (!key) inserts.set(memory.status, made.statement);
      return made;
    },

    select(ref: Located): Query {
      const where = one(ref);
      return query('light', `select ${columns} from ${names.memories} where ${where}`, where.values);
    },

    /**
     * The memories next to others in their conversations: two looks at the index of conversations for each. They have no other
     * condition, else the planner would read and sort the whole conversation. What the hash stands for is compared afterwards.
     */
    neighbours({ user_id, ids, written, max_content_bytes, max_bytes, ...visible }: NeighboursQuery): Query {
      const where = conditions(names.placement.shardOf(user_id));
      const [user, known] = [where.bind(user_id), `${where.bind(toTextArray(ids))}::text[]`];
      const seen = conditionOf(where, (inner) => whereWithin(inner, visible));
      const filter = conditionOf(where, (inner) => {
        inner.and(`not id = any(${known})`);
        whereWritten(inner, written);
        if (max_content_bytes !== undefined)
          inner.and(`octet_length(content) <= ${inner.bind(max_content_bytes)}::int8`);
      });
      const next = (beyond: '<' | '>', order: 'asc' | 'desc') => `(
        select id as near from ${names.memories}
        where ${where.inShard()} and ${CONVERSATION} = place and source ->> 'ref' is not null and (created_at, id) ${beyond} (anchor_at, anchor)
        order by created_at ${order}, id ${order} limit 1)`;
      const order = 'created_at desc, id desc';
      const rows = `select *, ${BYTES} as bytes from ${names.memories} join found on id = near
        where ${where.inShard()} and user_id = ${user} and ${filter}
          and (scope, source ->> 'app', source ->> 'ref') is not distinct from (of_scope, of_app, of_ref)`;
      return query(
        'heavy',
        `with anchors as materialized (
           select id as anchor, created_at as anchor_at, ${CONVERSATION} as place,
             scope as of_scope, source ->> 'app' as of_app, source ->> 'ref' as of_ref
           from ${names.memories} where ${where.inShard()} and id = any(${known}) and ${UNINDEXED_USER} = ${user} and ${seen}
             and source ->> 'ref' is not null),
         found as materialized (
           select distinct on (near) near, of_scope, of_app, of_ref from anchors cross join lateral (${next('<', 'desc')} union all ${next('>', 'asc')}) as pair)
         select ${listColumns} from ${firstWithin(rows, order, where.bind(max_bytes))} as m order by ${order}`,
        where.values,
      );
    },

    /** Writes only the given fields, so patches of different fields never undo each other. */
    update(ref: Located, wanted: Update, call: Call): Query {
      const where = oneVersion(ref);
      const sets = changesOf(names, where, wanted);
      const text = `update ${names.memories} set ${sets.join(', ')} where ${where}`;
      const update = { action: 'update', call, row: COLUMN_NAMES, ...queueing(wanted.vector) } as const;
      const moves = audited && wanted.patch.scope !== undefined;
      if (!versions && !moves && !wanted.room) return change(where, { ...update, text });
      // Locked before the update, which reads its number: afterwards what it was would be hidden from this statement.
      const kept = versions ? `bucket, version, ${COLUMN_NAMES}` : wanted.room ? 'scope, content' : 'scope';
      const after = [update.after, ...(versions ? [keepVersion(names), dropVersions(names, versions)] : [])];
      return change(where, {
        ...update,
        first: `before as materialized (select ${kept} from ${names.memories} where ${where} for update)${wanted.room ? `, ${growContent(names, where.bind, wanted.room)}` : ''}`,
        text: `${text} and (select count(*) from before) > 0${wanted.room ? ' and (select count(*) from used) > 0' : ''}`,
        after: after.filter((part) => part !== undefined).join(', ') || undefined,
        left: moves ? '(select array[before.scope] from before where before.scope <> changed.scope)' : undefined,
      });
    },

    /** Returns a row if there was one. */
    remove(ref: Located, call: Call): Query {
      const where = oneVersion(ref);
      return change(where, { action: 'delete', call, text: `delete from ${names.memories} where ${where}` });
    },

    /**
     * Without the contents of large rows. If one is missing, run the list again with `'bytes'`, which limits the answer.
     * `large`: whether the user's memories are in the indexes of large users.
     */
    list(wanted: ListQuery, { large = false, within }: { large?: boolean; within?: 'bytes' } = {}): Query {
      const where = conditions(names.placement.shardOf(wanted.user_id));
      const max = where.bind(within ? wanted.max_bytes : Math.floor(wanted.max_bytes / wanted.limit));
      const { first, from } =
        large && isFiltered(wanted) ? listOfLargeUser(names, where, wanted) : listOf(names, where, wanted);
      if (!within) return query(weightOf(wanted), `${first} select ${shortColumns} ${from}`, where.values);
      const order = 'created_at desc, id desc';
      const rows = firstWithin(`select m.*, ${BYTES} as bytes ${from}`, order, max);
      return query('heavy', `${first} select ${listColumns} from ${rows} as m order by ${order}`, where.values);
    },
  };
}

const insertedColumns = (names: Names): string =>
  `bucket, id, user_id, content, scope, tags, source, confidence, created_at, updated_at, valid_from, valid_to, supersedes, extensions,
   keywords, ${names.embedding}, large`;

/** Without `updated_at`, which equals `created_at`. */
const insertedValues = (
  { memory, bucket, vector, keywords }: Insert,
  keys: Buffer | string = toBigintArray(keywords),
): readonly unknown[] => [
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

/** `first`: the statement's `with`, or empty. `from`: selects the page from `m`, in its order. */
interface Listed {
  readonly first: string;
  readonly from: string;
}

/**
 * Without an index for the filter, the planner would sort all memories of the user, because it expects few to match. Of a
 * `case` it expects half to match, and reads in the order of time until the page is full.
 */
const inOrder = (filter: string): string => (filter === 'true' ? filter : `case when ${filter} then true end`);

function listOf(names: Names, where: Conditions, wanted: ListQuery): Listed {
  where.and(where.inShard('m.'));
  where.and(`user_id = ${where.bind(wanted.user_id)}`);
  const listed = conditionOf(where, (inner) => whereListed(inner, wanted));
  where.and(hasLiteralScope(wanted) ? listed : inOrder(listed));
  whereOnPage(where, wanted);
  const from = `from ${names.memories} m where ${where} order by m.created_at desc, m.id desc limit ${where.bind(wanted.limit)}`;
  return { first: '', from };
}

/** Among so many memories a page of 50 is full unless little more than one in a hundred matches. Reading them takes 3 ms. */
const NEWEST = 4_000;

/**
 * A filtered page of a large user. Reads the newest memories in the order of time; if those fill no page, few match, and
 * the index of the filter leads to them.
 */
function listOfLargeUser(names: Names, where: Conditions, wanted: ListQuery): Listed {
  const user = where.bind(wanted.user_id);
  const limit = where.bind(wanted.limit);
  const inTime = conditionOf(where, (inner) => whereOnPage(inner, wanted));
  const listed = conditionOf(where, (inner) => whereListed(inner, wanted));
  const byTag = conditionOf(where, (inner) => whereTagsOfLargeUser(inner, wanted));
  const mine = where.inShard();
  const indexed = wanted.tags.length > 0 || hasLiteralScope(wanted);
  const every = indexed
    ? `${mine} and ${UNINDEXED_USER} = ${user} and ${listed} and ${byTag}`
    : `${mine} and user_id = ${user} and ${inOrder(listed)}`;
  const order = 'order by created_at desc, id desc';
  const oldest = `select created_at from ${names.memories} where ${mine} and user_id = ${user} and ${inTime} ${order} offset ${NEWEST} limit 1`;
  const first = `with newest as materialized (select id from ${names.memories}
      where ${mine} and user_id = ${user} and ${inTime} and created_at >= coalesce((${oldest}), '-infinity') and ${inOrder(listed)} ${order} limit ${limit}),
    page as (select id as listed from newest where (select count(*) from newest) = ${limit}
      union all (select id from ${names.memories} where ${every} and ${inTime}
        and (select count(*) from newest) < ${limit} ${order} limit ${limit}))`;
  return {
    first,
    from: `from page join ${names.memories} m on m.id = listed and ${where.inShard('m.')} order by m.created_at desc, m.id desc`,
  };
}

const isFiltered = ({ scope, tags }: ListQuery): boolean => scope !== undefined || tags.length > 0;

/** Of a list that filters, few memories may match: it may read all that the user has before its page is full. */
const weightOf = (wanted: ListQuery): Weight =>
  isFiltered(wanted) || wanted.within !== null || wanted.written || wanted.outside ? 'heavy' : 'small';

/** Whether the index on user and scope leads to the scopes that match. */
const hasLiteralScope = ({ scope }: ListQuery): boolean => typeof scope === 'string' && literalPrefix(scope) !== '';

/** The filters of a list, and what the caller may see. */
function whereListed(where: Conditions, wanted: ListQuery): void {
  whereScopeGlob(where, wanted);
  whereTags(where, wanted.tags);
  whereWritten(where, wanted.written);
  // The index on user and time serves restricted callers too: index ranges over the scope would read and sort everything
  // visible for every page (66 ms instead of 0.7 ms at 45,000 of a user's 50,000 memories).
  whereWithin(where, wanted);
}

function whereOnPage(where: Conditions, wanted: ListQuery): void {
  whereInTime(where, wanted);
  if (wanted.after) {
    const { created_at, id } = wanted.after;
    where.and(`(created_at, id) < (${where.bind(created_at)}::timestamptz, ${where.bind(id)})`);
  }
}

/** The most that an origin takes, which does not count: two names of 256 characters. */
const MAX_STAMP_BYTES = 4_096;

/** The columns that an update sets. It does not match a memory that it would make too large, or give too many `x-` keys. */
function changesOf(names: Names, where: Conditions, { patch, keywords, vector, max_bytes }: Update): string[] {
  const sets: string[] = [];
  const set = (column: string, value: unknown, cast = '') => sets.push(`${column} = ${where.bind(value)}${cast}`);
  /** SQL of the changed columns that count for the size. */
  const grown: Record<string, string> = {};
  const grow = (column: string, sql: string) => {
    sets.push(`${column} = ${sql}`);
    grown[column] = sql;
  };
  if (patch.content !== undefined && keywords) {
    grow('content', `${where.bind(patch.content)}::text`);
    set('keywords', toBigintArray(keywords));
    set(names.embedding, vector instanceof Float32Array ? toHalfvec(vector) : null, `::${names.halfvec}`);
  }
  if (patch.scope !== undefined) set('scope', patch.scope);
  if (patch.tags !== undefined) grow('tags', `${where.bind(toTextArray(patch.tags))}::text[]`);
  if (patch.confidence !== undefined) set('confidence', patch.confidence);
  if (patch.valid_to !== undefined) set('valid_to', patch.valid_to);
  if (patch.supersedes !== undefined) grow('supersedes', `${where.bind(toTextArray(patch.supersedes))}::text[]`);
  if (patch.extensions !== undefined) {
    const entries = Object.entries(patch.extensions);
    const removed = where.bind(toTextArray(entries.filter(([, value]) => value === null).map(([key]) => key)));
    const set = where.bind(JSON.stringify(mergeExtensions(patch.extensions)));
    grow('extensions', `(extensions || ${set}::jsonb) - ${removed}::text[]`);
  }
  if (grown.extensions) {
    // Without those of the gateway.
    const keys = (extensions: string) =>
      `(select count(*) from jsonb_object_keys(${extensions}) as key where key not ilike 'x-omp-%')`;
    where.and(`${keys(grown.extensions)} <= greatest(${MAX_EXTENSIONS}, ${keys('extensions')})`);
  }
  if (Object.keys(grown).length > 0) {
    where.and(`${bytesAfter(grown)} <= greatest(${where.bind(max_bytes + MAX_STAMP_BYTES)}::int8, ${bytesAfter({})})`);
  }
  // Always later than the last change, even if the clock went back or both are in the same millisecond.
  const now = where.bind(new Date().toISOString());
  sets.push('version = version + 1');
  sets.push(
    `updated_at = greatest(${now}::timestamptz, (updated_at at time zone 'UTC' + interval '1 millisecond') at time zone 'UTC')`,
  );
  return sets;
}
