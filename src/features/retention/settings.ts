import { z } from 'zod';
import { settingFacts } from '../../config/facts.ts';
import { scopeGlob, tag } from '../../verbs/fields.ts';

const DAYS = 'must be a whole number from 1 to 36500, or null to keep what matches';

const rule = z
  .strictObject({
    scope: scopeGlob.optional(),
    tag: tag.optional(),
    days: z.int(DAYS).min(1, DAYS).max(36_500, DAYS).nullable(),
    by: z.enum(['created_at', 'updated_at']).optional(),
  })
  .refine(({ days, by }) => days !== null || by === undefined, {
    path: ['by'],
    message: 'has no effect while days is null',
  });

/** More rules would slow each memory down. */
const MAX_RULES = 100;

export const retention = z
  .array(rule)
  .max(MAX_RULES, `must hold at most ${MAX_RULES} rules`)
  .superRefine((rules, context) => {
    const last = rules.findIndex(({ scope, tag }) => scope === undefined && tag === undefined);
    if (last < 0 || last === rules.length - 1) return;
    context.addIssue({
      code: 'custom',
      path: [last + 1],
      message: `never counts: entry ${last + 1} has neither scope nor tag, so it matches every memory`,
    });
  })
  .default([])
  .register(settingFacts, {
    env: 'OMP_RETENTION',
    description:
      'After how many days memories are deleted, by scope or tag; the first rule that a memory matches decides, and days: null keeps it; in the environment as JSON',
    allowed: 'rules, each with scope (a glob) or tag or neither, days, and by (created_at, the default, or updated_at)',
    example: [
      { tag: 'keep', days: null },
      { scope: 'chat/*', days: 90 },
      { tag: 'temp', days: 7, by: 'updated_at' },
    ],
  });
