import { type AuditOptions, type Call, erasedName, type Holdings, MAX_LEFT_SCOPES, type Provider } from '#provider';
import type { Run } from '../client/connections.ts';
import { type Conditions, conditions } from '../sql/conditions.ts';
import { materialized, part, type WithPart, withParts } from '../sql/parts.ts';
import { toTextArray } from '../sql/values.ts';
import { insertChangeEntry } from './change-statement.ts';
import { createKeyErasure } from './idempotency.ts';
import type { Names } from './names.ts';

/** What the entry of an erase reads of the part before it. */
const ENTRY = ['bucket', 'user_id', 'id', 'scope', 'left_scopes'] as const;

/** Memories or entries that one statement changes, to keep the locks short. */
const BATCH = 10_000;

/** What `Holdings` and the rows of statements count alike. */
const ROWS = ['memories', 'vectors', 'versions', 'queued'] as const;

/** Erases users, and counts what is stored of them. */
export function createErasure(
  names: Names,
  run: Run,
  audit: AuditOptions | undefined,
): Required<Pick<Provider, 'erase' | 'holdings'>> {
  const keys = createKeyErasure(names, run);
  return {
    async erase({ user_id }, call) {
      const removed = { memories: 0, vectors: 0, versions: 0, queued: 0 };
      for (;;) {
        const where = conditions(names.placement.shardOf(user_id));
        const [user, most] = [where.bind(user_id), where.bind(BATCH)];
        // Counted before it is deleted: with an entry Citus runs the parts one after the other.
        const doomed = part(
          'doomed',
          'id',
          'has_vector',
        )`select id, ${names.embedding} is not null as has_vector from ${names.memories}
            where ${where.inShard()} and user_id = ${user} limit ${most} for update`;
        const counted = materialized('counted', ...ROWS)`${countRows(where, doomed)}`;
        // By id: a row that was changed while this waited for its lock has another ctid.
        const deleted = part(
          'deleted',
          'scope',
        )`delete from ${names.memories} where ${where.inShard()} and id = any(array(select ${doomed.id} from ${doomed})) returning scope`;
        // Each statement writes the entries of what it deletes; the first one writes that of a user without memories too.
        const entries = (lists: WithPart<'left_scopes'>) => {
          const changed = part(
            'changed',
            ...ENTRY,
          )`select ${where.bind(names.placement.storedBucket(user_id))}::int2 as bucket, ${user}::text as user_id, null::text as id, null::text as scope, ${lists.left_scopes}
            from (select count(*) from ${deleted}) as d left join ${lists} on true where count > 0 or ${removed.memories === 0}`;
          const written = { action: 'erase', left: changed.left_scopes } as const;
          return [
            lists,
            changed,
            part('entry')`${insertChangeEntry(names, where.bind, { changed, ...written }, call)}`,
          ];
        };
        const parts = [doomed, counted, deleted, ...(audit ? entries(listsOf(deleted)) : [])];
        const [row] = await run('heavy', `${withParts(parts)} select * from ${counted}`, where.values, call);
        for (const kind of ROWS) removed[kind] += row?.[kind] as number;
        if ((row?.memories as number) < BATCH) break;
      }
      const usage = `delete from ${names.userUsage} where bucket = $1::int2 and user_id = $2 returning 1`;
      const usage_counts = (await run('small', usage, [names.placement.storedBucket(user_id), user_id], call)).length;
      const idempotency_keys = await keys.erase(user_id, call);
      if (audit?.erased_users !== 'hash') return { ...removed, usage_counts, idempotency_keys };
      return { ...removed, usage_counts, idempotency_keys, audit_entries: await hideUser(names, run, user_id, call) };
    },

    async holdings({ user_id }, call) {
      const where = conditions(names.placement.shardOf(user_id));
      const mine = `${where.inShard()} and user_id = ${where.bind(user_id)}`;
      const memories = part(
        'mine',
        'id',
        'has_vector',
      )`select id, ${names.embedding} is not null as has_vector from ${names.memories} where ${mine}`;
      const [[row], idempotency_keys] = await Promise.all([
        run(
          'heavy',
          `${withParts([memories])}
           ${countRows(where, memories)}, (select count(*)::float8 from ${names.auditLog} where ${mine}) as audit_entries,
             (select count(*)::float8 from ${names.userUsage} where ${mine}) as usage_counts,
             (select count(*)::float8 from ${names.largeUsers} where ${mine}) as large_user_notes`,
          where.values,
          call,
        ),
        keys.count(user_id, call),
      ]);
      return { ...(row as unknown as Holdings), idempotency_keys };
    },
  };

  /** Counts memories, and what goes with them by a foreign key: as it was before the statement. */
  function countRows(where: Conditions, memories: WithPart<'id' | 'has_vector'>): string {
    const alike = (table: string, id: string) =>
      `(select count(*)::float8 from ${table} where ${where.inShard()} and ${id} in (select ${memories.id} from ${memories}))`;
    return `select (select count(*)::float8 from ${memories}) as memories,
      (select count(*)::float8 from ${memories} where ${memories.has_vector}) as vectors,
      ${alike(names.versions, 'id')} as versions, ${alike(names.ingestion, 'memory_id')} as queued`;
  }
}

/** The `left_scopes` of entries `erase`, from these scopes. */
const listsOf = (scopes: WithPart<'scope'>): WithPart<'left_scopes'> =>
  part('lists', 'left_scopes')`select array_agg(scope) as left_scopes from
  (select scope, (row_number() over (order by scope) - 1) / ${MAX_LEFT_SCOPES} as list
   from (select distinct ${scopes.scope} from ${scopes} where ${scopes.scope} is not null) as scopes) as numbered group by list`;

/**
 * Replaces an erased user in entries, but for those of erases (`AuditOptions.erased_users`), also as the caller: the subject of a token may be
 * the id of its user. Returns their number. Who follows only a scope that an entry named, and no later erase, learns of the erase by an entry
 * of its own, which is written first.
 */
async function hideUser(names: Names, run: Run, user_id: string, call: Call): Promise<number> {
  const hidden = erasedName(names.secret, user_id);
  for (let all = 0; ; ) {
    const where = conditions(names.placement.shardOf(user_id));
    const mine = `${names.auditLog} where ${where.inShard()} and user_id = ${where.bind(user_id)}`;
    const lost = part(
      'lost',
      'scope',
    )`select named.scope from named left join told on told.scope = named.scope where told.seq is null or told.seq < named.seq`;
    const lists = listsOf(lost);
    const rows = await run(
      'heavy',
      `with mine as materialized (select seq, node, scope, left_scopes from ${mine} and action <> 'erase'),
         told as (select scope, max(seq) as seq from (select seq, unnest(left_scopes) as scope from ${mine} and action = 'erase') as e group by scope),
         named as (select seq, scope from mine where node is not null union all select seq, unnest(left_scopes) from mine),
         ${lost.definition}, ${lists.definition}
       select last, ${lists.left_scopes} from (select max(seq) as last from mine) as m left join ${lists} on true where last is not null`,
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
  const changed = part(
    'changed',
    ...ENTRY,
  )`select ${bind(names.placement.storedBucket(user_id))}::int2 as bucket, ${bind(user_id)}::text as user_id, null::text as id,
    null::text as scope, ${bind(toTextArray(left))}::text[] as left_scopes`;
  const entry = insertChangeEntry(names, bind, { changed, action: 'erase', left: changed.left_scopes }, call);
  await run('small', `${withParts([changed])} ${entry}`, values, call);
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
