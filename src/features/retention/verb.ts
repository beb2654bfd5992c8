import { z } from 'zod';
import type { Call, Memory } from '#contract';
import type { Access } from '../../core/access.ts';
import { NO_FACTS } from '../../core/audit-queue.ts';
import { cursorKind, NO_TIME } from '../../core/cursor.ts';
import { partsIn } from '../../stores/mount-stores.ts';
import { count, cursor, leftOut, next_cursor } from '../../verbs/fields.ts';
import { verb } from '../../verbs/verb.ts';
import { memoryExample } from '../../verbs/wire-memory.ts';
import { canRetain, PAGE, type RetentionPlace } from './retention.ts';

/*
 * Retention as a request: what the rules of the configuration delete now, or would (Decision 60).
 */

const RetentionBody = z
  .object({
    dry_run: z.boolean().default(false).meta({ description: 'Only says what would be deleted.' }),
    cursor,
  })
  .meta({ id: 'Retention' });

const rule = z.int().min(1).meta({ description: 'The number of the rule, from 1.' });

const RetentionCursor = cursorKind<RetentionPlace>('retention', {
  position: ({ at, after = '' }) => ({ created_at: NO_TIME, id: `${at}~${after}` }),
  place({ id }) {
    const [, at, after] = /^(\d{1,3})~(.*)$/su.exec(id) ?? [];
    return at === undefined ? undefined : { at: Number(at), after: after || undefined };
  },
});

export const retention = verb({
  name: 'retention',
  method: 'POST',
  path: '/retention',
  input: RetentionBody,
  body: { schema: RetentionBody, example: { dry_run: true } },
  needs: ['export', 'delete'],
  suits: (store) => partsIn(store).some((part) => canRetain(part.store)),
  writes: true,
  feature: 'retention',
  tag: 'store',
  demands: { read: 'all', delete: 'all', users: 'all', trusted: true },
  facts: () => NO_FACTS,
  async run({ dry_run, cursor }, access, call) {
    const rules = access.retention?.rules ?? [];
    // The numbers of rules count for these rules only.
    const filters = { dry_run, rules };
    const from = RetentionCursor.read(cursor, filters);
    const work = () => retain(access, { from, dry_run }, call);
    const { next, ...page } = await access.shares.records(1, call, work, PAGE.max_bytes);
    return {
      rules,
      ...page,
      next_cursor: RetentionCursor.write(next, filters),
    };
  },
  id: 'applyRetention',
  summary: 'Delete what the retention rules of the gateway say',
  description: `The gateway does so once a day by itself. Each memory is deleted in one step, with its own audit entry, unless it is changed meanwhile.
Pass each \`next_cursor\` as \`cursor\` until it is null, and add up the counts; after an error, repeating the request goes on. Available if \`features.retention\` is true.`,
  success: {
    description: 'What was deleted, or would be.',
    schema: z
      .looseObject({
        rules: z
          .array(
            z.looseObject({
              scope: z.string().optional(),
              tag: z.string().optional(),
              days: z.int().nullable().meta({ description: 'Null: what matches is kept.' }),
              by: z
                .enum(['created_at', 'updated_at'])
                .optional()
                .meta({ description: 'From which time the days count; absent: `created_at`.' }),
            }),
          )
          .meta({ description: 'As configured: the first that a memory matches decides. Empty: nothing is deleted.' }),
        looked: count.meta({ description: 'Memories that this request has looked at.' }),
        items: z
          .array(z.looseObject({ user_id: z.string(), scope: z.string().nullable(), rule, memories: count }))
          .meta({ description: 'What was deleted, by user, scope and rule.' }),
        failed: count.meta({
          description: 'Memories that could not be deleted: they stay until the rules are applied again.',
        }),
        kept: z
          .array(z.looseObject({ rule, memories: count }))
          .meta({ description: 'What rules without days have kept.' }),
        next_cursor,
        ...leftOut,
      })
      .meta({ id: 'RetentionPage' }),
    example: {
      rules: [
        { tag: 'keep', days: null },
        { scope: 'coding/*', days: 90 },
      ],
      looked: 2,
      items: [{ user_id: memoryExample.user_id, scope: memoryExample.scope, rule: 2, memories: 1 }],
      failed: 0,
      kept: [{ rule: 1, memories: 1 }],
      next_cursor: null,
    },
  },
});

/** Memories that one request looks at, and rows of counts: each may be exceeded by one page. Then the time that it takes, in milliseconds. */
const MAX_LOOKED = 2_000;
const MAX_ROWS = 1_000;
const MAX_MS = 10_000;

/** Ends early, when it has looked at enough, or half of the request's time has passed. */
async function retain(
  access: Access,
  { from, dry_run }: { readonly from: RetentionPlace | undefined; readonly dry_run: boolean },
  call: Call,
) {
  const now = performance.now();
  const end = now + Math.min(MAX_MS, ((call.deadline ?? Number.POSITIVE_INFINITY) - now) / 2);
  const { store } = access;
  const check = (memory: Memory) => access.readable(access.writable(memory));
  const rows = new Map<string, { user_id: string; scope: string | null; rule: number; memories: number }>();
  const kept = new Map<number, number>();
  let looked = 0;
  let failed = 0;
  let next: RetentionPlace | undefined;
  for await (const step of access.retention?.pass({ store, from, dry_run, check }, call) ?? []) {
    looked += step.looked;
    failed += step.failures.length;
    ({ next } = step);
    for (const index of step.kept) kept.set(index, (kept.get(index) ?? 0) + 1);
    for (const { memory, rule } of step.deleted) {
      const { user_id, scope } = memory;
      const key = JSON.stringify([user_id, scope, rule]);
      rows.set(key, { user_id, scope, rule: rule + 1, memories: (rows.get(key)?.memories ?? 0) + 1 });
    }
    if (looked >= MAX_LOOKED || rows.size >= MAX_ROWS || performance.now() > end) break;
  }
  const keptRows = [...kept].sort(([a], [b]) => a - b).map(([index, memories]) => ({ rule: index + 1, memories }));
  return { result: { looked, items: [...rows.values()], failed, kept: keptRows, next }, count: 0, bytes: 0 };
}
