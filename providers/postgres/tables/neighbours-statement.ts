import type { NeighboursQuery } from '#provider';
import { type Query, queriesOf, type Statement, type Weight } from '../client/connections.ts';
import { conditionOf, conditions, firstWithin, whereWithin } from '../sql/conditions.ts';
import { toTextArray } from '../sql/values.ts';
import { CONVERSATION, UNINDEXED_USER, whereWritten } from './conditions.ts';
import { BYTES, columnsOf, queueStatusOfMany } from './memory-rows.ts';
import type { Names } from './names.ts';

/**
 * Makes the statement of the memories next to others in their conversations: two looks at the index of conversations for each. They have no other
 * condition, else the planner would read and sort the whole conversation. What the hash stands for is compared afterwards.
 */
export function createNeighbours(names: Names, statement: (weight: Weight, text: string) => Statement) {
  const query = queriesOf(statement);
  const columns = columnsOf(names, queueStatusOfMany(names));
  return ({ user_id, ids, written, max_content_bytes, max_bytes, ...visible }: NeighboursQuery): Query => {
    const where = conditions(names.placement.shardOf(user_id));
    const [user, known] = [where.bind(user_id), `${where.bind(toTextArray(ids))}::text[]`];
    const seen = conditionOf(where, (inner) => whereWithin(inner, visible));
    const filter = conditionOf(where, (inner) => {
      inner.and(`not id = any(${known})`);
      whereWritten(inner, written);
      if (max_content_bytes !== undefined) inner.and(`octet_length(content) <= ${inner.bind(max_content_bytes)}::int8`);
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
       select ${columns} from ${firstWithin(rows, order, where.bind(max_bytes))} as m order by ${order}`,
      where.values,
    );
  };
}
