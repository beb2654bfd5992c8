import { z } from 'zod';
import type { Call } from '#contract';
import type { Access } from '../core/access.ts';
import { NO_FACTS } from '../core/audit-queue.ts';
import { time } from './fields.ts';
import { verb } from './verb.ts';
import { memoryExample } from './wire-memory.ts';

/*
 * Freezing the store, so that it can be moved (Decision 53).
 */

const logChange = ({ log }: Access, { requestId, caller }: Call, message: string): void =>
  log.warn({ request_id: requestId, app: caller.app }, message);

const Frozen = z
  .looseObject({
    since: time('Since when the store takes no changes; null: it takes them.').nullable(),
    by: z
      .string()
      .nullable()
      .meta({ description: 'The name of the key that froze it, or another name of the caller.' }),
  })
  .meta({ id: 'Freeze' });

const THAWED = { since: null, by: null };
const example = { since: memoryExample.created_at, by: 'operator' };

const common = {
  path: '/freeze',
  input: z.object({}),
  needs: ['freezing'],
  feature: 'freeze',
  // On an open gateway anyone may erase every user, so freezing needs no more.
  demands: { admin: 'unless open' },
  errors: ['unsupported_capability'],
  consistent: false,
  tag: 'store',
} as const;

export const getFreeze = verb({
  ...common,
  name: 'freeze',
  method: 'GET',
  facts: 'none',
  async run(_, access, call) {
    const { store } = access;
    // A feed that is held back lacks changes from before the freeze.
    const feed_held_seconds = (await store.changesHeld?.(call)) ?? 0;
    return { ...((await store.freezing.current(call)) ?? THAWED), feed_held_seconds };
  },
  id: 'getFreeze',
  summary: 'Get whether the store is frozen',
  description: 'Available if `features.freeze` is true.',
  success: {
    description: 'Since when, and by whom.',
    schema: z
      .looseObject({
        ...Frozen.shape,
        feed_held_seconds: z.number().min(0).meta({
          description: 'For how long an open transaction has held back the feed of changes; 0: none does.',
        }),
      })
      .meta({ id: 'FreezeState' }),
    example: { ...example, feed_held_seconds: 0 },
  },
});

export const freeze = verb({
  ...common,
  name: 'freeze',
  method: 'POST',
  facts: () => NO_FACTS,
  async run(_, access, call) {
    const { app, id } = access.principal;
    const state = await access.store.freezing.freeze({ by: (app ?? id).slice(0, 200) }, call);
    logChange(access, call, 'the store is frozen: it takes no changes');
    return state;
  },
  id: 'freezeStore',
  summary: 'Stop all changes of memories',
  description: `On every gateway of this store, until it is unfrozen: changes answer 503 with \`Retry-After\`, reads go on. Of a store
that is frozen already, the freeze stays as it is. Available if \`features.freeze\` is true.`,
  success: { description: 'Since when, and by whom.', schema: Frozen, example },
});

export const unfreeze = verb({
  ...common,
  name: 'unfreeze',
  method: 'DELETE',
  facts: () => NO_FACTS,
  async run(_, access, call) {
    const ended = await access.store.freezing.unfreeze(call);
    if (ended) logChange(access, call, 'the store is not frozen any more');
    return ended ?? THAWED;
  },
  id: 'unfreezeStore',
  summary: 'Allow changes of memories again',
  description: 'Available if `features.freeze` is true.',
  success: { description: 'The freeze that ended.', schema: Frozen, example },
});
