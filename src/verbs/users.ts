import { z } from 'zod';
import type { Call, Holdings, LimitKind } from '#contract';
import type { Access } from '../core/access.ts';
import { NO_FACTS } from '../core/audit-queue.ts';
import { idCursor } from '../core/cursor.ts';
import { isEmpty, READ_BACKS, type StoreErasure } from '../core/erasure.ts';
import { count, cursor, LIMITS, leftOut, next_cursor, time, upTo, userId, wholeNumber } from './fields.ts';
import { verb } from './verb.ts';
import { memoryExample, withoutUndefined } from './wire-memory.ts';

const last_write = time('Time of the last change of a memory that is still there.');

const UsersInput = z.object({
  prefix: upTo(LIMITS.userId).optional().meta({ description: 'Only users whose id begins with this text.' }),
  limit: wholeNumber('Maximum users per page', 1, 500).default(50),
  cursor,
});

const UserCursor = idCursor('users');

/** Decision 37. */
export const users = verb({
  name: 'users',
  method: 'GET',
  path: '/users',
  input: UsersInput,
  needs: ['users'],
  feature: 'users',
  demands: { read: 'some' },
  facts: () => NO_FACTS,
  async run({ cursor, ...query }, access, call) {
    const filters = { prefix: query.prefix };
    const request = {
      ...withoutUndefined({ ...query, after: UserCursor.read(cursor, filters) }),
      ...access.filter(),
    };
    const page = await access.store.users(request, call);
    if (!page.items.every(({ user_id }) => access.mayAccess(user_id))) throw access.mismatch();
    return { items: page.items, next_cursor: UserCursor.write(page.next, filters) };
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
async function limitsOf({ principal, store, userLimits, bounds }: Access, user_id: string, call: Call) {
  if (!userLimits || !store.userUsage || bounds.within !== null) return undefined;
  const used = await store.userUsage({ user_id }, call);
  const limits = userLimits.of(principal)(user_id);
  const of = (kind: LimitKind) => ({ used: used[kind], limit: limits[kind] });
  return { memories: of('memories'), bytes: of('bytes'), adds_per_day: of('adds_per_day') };
}

const amount = z.int().min(0);
const limitFields = z.looseObject({ used: amount, limit: amount.nullable() });

/** Decision 37. */
export const stats = verb({
  name: 'stats',
  method: 'GET',
  path: '/stats',
  input: z.object({ user_id: userId }),
  needs: ['userStats'],
  feature: 'stats',
  demands: { read: 'some', users: { in: 'user_id' } },
  facts: (input, access) => access.facts(input),
  async run({ user_id }, access, call) {
    const { within } = access.bounds;
    const stats = await access.store.userStats({ user_id, limit: MAX_COUNTED, within }, call);
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

const holdings = z.looseObject({
  memories: amount.optional(),
  vectors: amount.optional(),
  versions: amount.optional(),
  queued: amount.optional(),
  usage_counts: amount.optional(),
  idempotency_keys: amount.optional(),
  audit_entries: amount.optional(),
  large_user_notes: amount.optional(),
} satisfies Record<keyof Holdings, z.ZodType>);

/** What an erase leaves, and why: everything else is an error or makes a receipt incomplete. */
const WHY = {
  audit_entries: 'they name the user, memories and scopes, and hold no texts; the retention of the audit log ends them',
  audit_entries_hashed: 'they name memories and a keyed hash instead of the user, and hold no texts',
  large_user_notes: 'the id alone, which tells searches how to read the user',
  api_keys:
    'stored keys whose `users` name the person, revoked ones included: revoke them (DELETE /keys/{id}, omp-gateway keys revoke), make new ones without the person, and delete the rows of revoked keys in the database; keys of the configuration are not counted',
  webhooks:
    'their `users` name the person: delete them (DELETE /webhooks/{id}, omp-gateway webhooks delete) and make new ones without the person',
  other_application:
    'another application fills the stores that have `mapped`, and may hold more of the user: rows without a text, other collections, tables and files',
  backups:
    'out of reach of the gateway, like the log of a database and the space of deleted rows: docs/operations.md, "Erased users"',
} as const;

/** How many of the gateway's own lists name the user. Nobody but an admin changes them. */
async function namedIn({ store: { keys }, webhooks }: Access, user_id: string, call: Call) {
  const naming = (all: readonly { readonly users: readonly string[] | null }[] = []) =>
    all.filter(({ users }) => users?.includes(user_id)).length;
  return { api_keys: naming(await keys?.list({}, call)), webhooks: naming(await webhooks?.list(call)) };
}

function receiptOf(user_id: string, stores: readonly StoreErasure[], named: Awaited<ReturnType<typeof namedIn>>) {
  const sum = (of: 'removed' | 'left', kind: keyof Holdings) =>
    stores.reduce((total, store) => total + (store[of][kind] ?? 0), 0);
  const counts = {
    audit_entries: sum('left', 'audit_entries'),
    audit_entries_hashed: sum('removed', 'audit_entries'),
    large_user_notes: sum('left', 'large_user_notes'),
    ...named,
  };
  const kept = Object.entries(counts).map(([what, count]) => ({ what, count, why: WHY[what as keyof typeof counts] }));
  return {
    user_id,
    at: new Date().toISOString(),
    complete: stores.every(isEmpty),
    stores,
    kept: [
      ...kept.filter(({ count }) => count > 0),
      ...(stores.some(({ mapped }) => mapped) ? [{ what: 'other_application', why: WHY.other_application }] : []),
      { what: 'backups', why: WHY.backups },
    ],
  };
}

/** Decisions 38 and 62. */
export const erase = verb({
  name: 'erase',
  method: 'DELETE',
  path: '/users/{id}/memories',
  input: z.object({ id: userId.meta({ description: 'Id of the user.' }) }),
  needs: ['erase'],
  writes: true,
  feature: 'erase',
  demands: { delete: 'all', users: { in: 'id' }, trusted: true },
  facts: ({ id }, access) => access.facts({ user_id: id }),
  async run({ id: user_id }, access, call) {
    // So that entries of requests before this one are among those that it counts or changes.
    await access.auditQueue.flush(call);
    const stores = await access.store.erase({ user_id }, call);
    const deleted = stores.reduce((sum, { removed }) => sum + (removed.memories ?? 0), 0);
    return { deleted, receipt: receiptOf(user_id, stores, await namedIn(access, user_id, call)) };
  },
  id: 'eraseUser',
  summary: 'Delete all memories of a user permanently, and say what was removed',
  description: `Afterwards every store is read back: \`receipt.complete\` is true if none
has anything of the user but what \`kept\` names. It is false if a memory was added meanwhile, or if an optional store failed: repeat
the request then, and after an error. Available if \`features.erase\` is true.`,
  success: {
    description: 'The number of memories, and the receipt.',
    schema: z
      .looseObject({
        deleted: count,
        receipt: z
          .looseObject({
            user_id: z.string(),
            at: time('When the stores were read back.'),
            complete: z.boolean().meta({ description: 'Whether every store was read back and is empty.' }),
            stores: z.array(
              z.looseObject({
                name: z.string(),
                removed: holdings.meta({ description: 'By kind. Absent: the store has no such kind.' }),
                left: holdings.meta({ description: 'What was there afterwards.' }),
                read_back: z.enum(READ_BACKS).meta({
                  description:
                    'counted: by the store itself; listed: the list of memories was read; impossible: the store can do neither; failed: an optional store failed.',
                }),
                mapped: z
                  .literal(true)
                  .optional()
                  .meta({ description: 'Another application fills it, and may hold more of the user.' }),
              }),
            ),
            kept: z.array(z.looseObject({ what: z.string(), count: amount.optional(), why: z.string() })),
          })
          .meta({ id: 'ErasureReceipt' }),
        ...leftOut,
      })
      .meta({ id: 'Erased' }),
    example: {
      deleted: 1,
      receipt: {
        user_id: memoryExample.user_id,
        at: memoryExample.updated_at,
        complete: true,
        stores: [
          {
            name: 'postgres',
            removed: { memories: 1, vectors: 1, versions: 2, queued: 0, idempotency_keys: 1 },
            left: {
              memories: 0,
              vectors: 0,
              versions: 0,
              queued: 0,
              idempotency_keys: 0,
              audit_entries: 4,
              large_user_notes: 0,
            },
            read_back: 'counted',
          },
        ],
        kept: [
          { what: 'audit_entries', count: 4, why: WHY.audit_entries },
          { what: 'backups', why: WHY.backups },
        ],
      },
    },
  },
});
