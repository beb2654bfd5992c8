import { type AuditAction, type AuditLog, type Call, erasedName, MAX_LEFT_SCOPES, type StoredEntry } from '#provider';
import type { Run } from '../client/connections.ts';
import { type Conditions, conditions, whereWithin } from '../sql/conditions.ts';
import { toIso, toTextArray } from '../sql/values.ts';
import type { Names } from './names.ts';

const COLUMNS = ['timestamp', 'app', 'action', 'user_id', 'memory_id', 'scope', 'request_id', 'outcome'] as const;

/**
 * SQL that writes one audit entry for each row of `changed`, from its `bucket`, `id`, `user_id` and `scope`. `left`: SQL of
 * `AuditEntry.left_scopes`; undefined: no scope can be left. The table adds node and transaction, unless the entry is no change.
 */
export function insertChangeEntry(
  names: Names,
  bind: Conditions['bind'],
  { action, left, changed = true }: { action: AuditAction; left?: string | undefined; changed?: boolean },
  call: Call,
): string {
  const [now, app, request] = changeEntryValues(call).map(bind);
  const unchanged = changed ? ['', ''] : [', node, xid', ', null, null'];
  const [column, value] = left === undefined ? unchanged : [', left_scopes', `, ${left}`];
  return `insert into ${names.auditLog} (bucket, ${COLUMNS.join(', ')}${column})
    select bucket, ${now}::timestamptz, ${app}::text, '${action}', user_id, id, scope, ${request}::text, 'ok'${value} from changed`;
}

/** The values that `insertChangeEntry` binds. */
export const changeEntryValues = ({ caller, requestId }: Call): readonly unknown[] => [
  new Date().toISOString(),
  caller.app,
  requestId,
];

export const createAuditLog = (names: Names, run: Run): AuditLog => ({
  async record(entries, call) {
    await run(
      'small',
      `insert into ${names.auditLog} (bucket, node, xid, left_scopes, ${COLUMNS.join(', ')})
       select bucket, node, case when node is not null then pg_current_xact_id() end, left_scopes::text[], ${COLUMNS.join(', ')} from unnest($1::int2[], $2::int2[], $3::text[], $4::timestamptz[],
         ${COLUMNS.slice(1).map((_, i) => `$${i + 5}::text[]`)}) as e (bucket, node, left_scopes, ${COLUMNS.join(', ')})`,
      [
        entries.map(({ user_id }) => names.placement.storedBucket(user_id ?? '')),
        entries.map(({ changed }) => (changed ? 0 : null)),
        entries.map(({ left_scopes }) => left_scopes && toTextArray(left_scopes)),
        ...COLUMNS.map((column) => entries.map((entry) => entry[column])),
      ],
      call,
    );
  },
  async read({ user_id, app, since, until, after, within, limit }, call) {
    const where = conditions(names.placement.shardOf(user_id));
    where.and(where.inShard());
    where.and(`user_id = ${where.bind(user_id)}`);
    if (app !== undefined) where.and(`app = ${where.bind(app)}`);
    if (since !== undefined) where.and(`timestamp >= ${where.bind(since)}::timestamptz`);
    if (until !== undefined) where.and(`timestamp <= ${where.bind(until)}::timestamptz`);
    if (after) {
      where.and(`(timestamp, seq) < (${where.bind(after.timestamp)}::timestamptz, ${where.bind(after.seq)}::bigint)`);
    }
    whereWithin(where, { within });
    const rows = await run(
      'heavy',
      `select date_part('epoch', timestamp) * 1000 as milliseconds, seq::float8 as seq, ${COLUMNS.slice(1).join(', ')}
       from ${names.auditLog} l where ${where} order by l.timestamp desc, l.seq desc limit ${where.bind(limit)}`,
      where.values,
      call,
    );
    return rows.map(
      ({ milliseconds, ...row }) => ({ timestamp: toIso(milliseconds as number), ...row }) as unknown as StoredEntry,
    );
  },
});

/** Entries that one statement changes, to keep the locks short. */
const BATCH = 10_000;

/** Part of a `with`: `lists` has the `left_scopes` of entries `erase`, from the scopes of this table. */
export const listsOf = (table: string): string => `lists as (select array_agg(scope) as left_scopes from
  (select scope, (row_number() over (order by scope) - 1) / ${MAX_LEFT_SCOPES} as list
   from (select distinct scope from ${table} where scope is not null) as scopes) as numbered group by list)`;

/**
 * Replaces an erased user in entries, but for those of erases (`AuditOptions.erased_users`), also as the caller: the subject of a token may be
 * the id of its user. Returns their number. Who follows only a scope that an entry named, and no later erase, learns of the erase by an entry
 * of its own, which is written first.
 */
export async function hideUser(names: Names, run: Run, user_id: string, call: Call): Promise<number> {
  const hidden = erasedName(names.secret, user_id);
  for (let all = 0; ; ) {
    const where = conditions(names.placement.shardOf(user_id));
    const mine = `${names.auditLog} where ${where.inShard()} and user_id = ${where.bind(user_id)}`;
    const rows = await run(
      'heavy',
      `with mine as materialized (select seq, node, scope, left_scopes from ${mine} and action <> 'erase'),
         told as (select scope, max(seq) as seq from (select seq, unnest(left_scopes) as scope from ${mine} and action = 'erase') as e group by scope),
         named as (select seq, scope from mine where node is not null union all select seq, unnest(left_scopes) from mine),
         lost as (select named.scope from named left join told on told.scope = named.scope where told.seq is null or told.seq < named.seq),
         ${listsOf('lost')}
       select last, left_scopes from (select max(seq) as last from mine) as m left join lists on true where last is not null`,
      where.values,
      call,
    );
    const [seen] = rows;
    if (!seen) return all;
    for (const { left_scopes } of rows)
      if (left_scopes) await writeErase(names, run, { user_id, left: left_scopes as string[] }, call);
    all += await hideUntil(names, run, { user_id, hidden, last: seen.last }, call);
  }
}

/** Writes an entry `erase` of these scopes. */
async function writeErase(
  names: Names,
  run: Run,
  { user_id, left }: { user_id: string; left: string[] },
  call: Call,
): Promise<void> {
  const { bind, values } = conditions();
  const changed = `select ${bind(names.placement.storedBucket(user_id))}::int2 as bucket, ${bind(user_id)}::text as user_id, null::text as id,
    null::text as scope, ${bind(toTextArray(left))}::text[] as left_scopes`;
  const entry = insertChangeEntry(names, bind, { action: 'erase', left: 'left_scopes' }, call);
  await run('small', `with changed as (${changed}) ${entry}`, values, call);
}

/** Replaces the user in the entries up to this one, and returns their number. */
async function hideUntil(
  names: Names,
  run: Run,
  { user_id, hidden, last }: { user_id: string; hidden: string; last: unknown },
  call: Call,
): Promise<number> {
  const where = conditions(names.placement.shardOf(user_id));
  const [user, name] = [where.bind(user_id), where.bind(hidden)];
  const shard = where.inShard();
  const text = `with hidden as (update ${names.auditLog} set user_id = ${name}, scope = null, left_scopes = null,
        app = case when app = ${user} then ${name} else app end
      where ${shard} and ctid = any(array(select ctid from ${names.auditLog}
        where ${shard} and user_id = ${user} and action <> 'erase' and seq <= ${where.bind(last)}::int8 limit ${BATCH})) returning 1)
    select count(*)::float8 as count from hidden`;
  for (let all = 0; ; ) {
    const [row] = await run('heavy', text, where.values, call);
    all += row?.count as number;
    if ((row?.count as number) < BATCH) return all;
  }
}
