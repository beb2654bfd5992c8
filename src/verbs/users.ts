import { z } from 'zod';
import type { Call, LimitKind } from '#contract';
import { type Access, denied } from '../core/access.ts';
import { NO_FACTS } from '../core/audit-queue.ts';
import { decodeCursor, encodeCursor, NO_TIME } from '../core/cursor.ts';
import { count, cursor, LIMITS, leftOut, next_cursor, time, upTo, userId, wholeNumber } from './fields.ts';
import { memoryExample, withoutUndefined } from './memory.ts';
import { verb } from './verb.ts';

const last_write = time('Time of the last change of a memory that is still there.');

const UsersInput = z.object({
  prefix: upTo(LIMITS.userId).optional().meta({ description: 'Only users whose id begins with this text.' }),
  limit: wholeNumber('Maximum users per page', 1, 500).default(50),
  cursor,
});

/** Decision 37. */
export const users = verb({
  name: 'users',
  method: 'GET',
  path: '/users',
  input: UsersInput,
  needs: ['users'],
  feature: 'users',
  async run({ cursor, ...query }, access, call) {
    const { users: allowedUsers, grants } = access.principal;
    const filters = { of: 'users', prefix: query.prefix };
    const after = cursor === undefined ? {} : { after: decodeCursor(cursor, filters).id };
    const request = { ...withoutUndefined(query), ...after, users: allowedUsers, within: grants.read };
    const page = await access.audited('users', NO_FACTS, call, async () => {
      if (grants.read?.length === 0) throw denied();
      return access.store.users(request, call);
    });
    if (!page.items.every(({ user_id }) => access.mayAccess(user_id))) throw access.mismatch();
    const next_cursor = page.next === undefined ? null : encodeCursor({ created_at: NO_TIME, id: page.next }, filters);
    return { items: page.items, next_cursor };
  },
  id: 'listUsers',
  summary: 'List the users that have memories',
  description: `The users that the caller may access and that have at least one memory the caller may read, if
\`features.users\` is true. Counts include only those memories. A page may have fewer users than \`limit\`, even none,
although there are more: \`next_cursor\` is then not null.`,
  success: {
    description: 'One page.',
    schema: z
      .looseObject({
        items: z.array(z.looseObject({ user_id: z.string(), count, last_write })),
        next_cursor,
        ...leftOut,
      })
      .meta({ id: 'UserPage' }),
    example: {
      items: [{ user_id: memoryExample.user_id, count: 1, last_write: memoryExample.updated_at }],
      next_cursor: null,
    },
  },
});

/** Scopes, and tags, in the answer. */
const MAX_COUNTED = 100;

/** Undefined: there are none, or the caller may not read all that counts for them. */
async function limitsOf({ principal, store, userLimits }: Access, user_id: string, call: Call) {
  if (!userLimits || !store.userUsage || principal.grants.read !== null) return undefined;
  const used = await store.userUsage({ user_id }, call);
  const limits = userLimits.of(principal)(user_id);
  const of = (kind: LimitKind) => ({ used: used[kind], limit: limits[kind] });
  return { memories: of('memories'), bytes: of('bytes'), adds_per_day: of('adds_per_day') };
}

const limitFields = z.looseObject({ used: count, limit: count.nullable() });

/** Decision 37. */
export const stats = verb({
  name: 'stats',
  method: 'GET',
  path: '/stats',
  input: z.object({ user_id: userId }),
  needs: ['userStats'],
  feature: 'stats',
  facts: (input, access) => access.facts(input),
  async run({ user_id }, access, call) {
    const { read } = access.principal.grants;
    access.requireUser(user_id, read);
    const stats = await access.store.userStats({ user_id, limit: MAX_COUNTED, within: read }, call);
    if (!stats.scopes.every(({ scope }) => access.admitsRead(scope))) throw access.mismatch();
    const limits = await limitsOf(access, user_id, call);
    return { user_id, ...stats, ...(limits && { limits }) };
  },
  id: 'getStats',
  summary: "Count a user's memories by scope and tag",
  description: 'Includes only memories that the caller may read. Available if `features.stats` is true.',
  success: {
    description: 'The counts.',
    schema: z
      .looseObject({
        user_id: z.string(),
        count,
        oldest: time('`created_at` of the oldest memory; null: no memories.').nullable(),
        newest: time('`created_at` of the newest memory; null: no memories.').nullable(),
        last_write: last_write.nullable(),
        scopes: z
          .array(z.looseObject({ scope: z.string().nullable(), count }))
          .meta({ description: 'The 100 largest, largest first; `scope` is null for memories without one.' }),
        tags: z
          .array(z.looseObject({ tag: z.string(), count }))
          .meta({ description: 'The 100 largest, largest first.' }),
        created: z
          .looseObject({
            per: z.enum(['day', 'month']),
            counts: z.array(z.looseObject({ from: z.iso.date(), count })),
          })
          .meta({
            description:
              'By `created_at`, in UTC, oldest first: by day if all are within 92 days, else the newest 120 months.',
          }),
        limits: z
          .looseObject({ memories: limitFields, bytes: limitFields, adds_per_day: limitFields })
          .optional()
          .meta({
            description:
              'What the user has of what it may have; `limit` is null if there is none. Only if the gateway limits users, for callers who may read all scopes.',
          }),
        ...leftOut,
      })
      .meta({ id: 'UserStats' }),
    example: {
      user_id: memoryExample.user_id,
      count: 1,
      oldest: memoryExample.created_at,
      newest: memoryExample.created_at,
      last_write: memoryExample.updated_at,
      scopes: [{ scope: memoryExample.scope, count: 1 }],
      tags: [{ tag: 'tooling', count: 1 }],
      created: { per: 'day', counts: [{ from: '2026-03-01', count: 1 }] },
    },
  },
});

/** Decision 38. Needs the grant to delete in every scope of the user. */
export const erase = verb({
  name: 'erase',
  method: 'DELETE',
  path: '/users/{id}/memories',
  input: z.object({ id: userId.meta({ description: 'Id of the user.' }) }),
  needs: ['erase'],
  writes: true,
  feature: 'erase',
  facts: ({ id }, access) => access.facts({ user_id: id }),
  async run({ id: user_id }, access, call) {
    if (!access.mayAccess(user_id) || access.principal.grants.delete !== null) throw denied();
    return { deleted: await access.store.erase({ user_id }, call) };
  },
  id: 'eraseUser',
  summary: 'Delete all memories of a user permanently',
  description: `Needs a grant to delete in every scope. The audit log keeps its entries, which have no contents. After an error
some memories may be deleted; repeat the request. Available if \`features.erase\` is true.`,
  success: {
    description: 'The number of memories.',
    schema: z.looseObject({ deleted: count }).meta({ id: 'Erased' }),
    example: { deleted: 1 },
  },
});
