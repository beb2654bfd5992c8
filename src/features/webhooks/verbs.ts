import { z } from 'zod';
import { type Call, DELIVERY_OUTCOMES, OmpError } from '#contract';
import { keyUserSchema } from '../../auth/configured-keys.ts';
import type { Access } from '../../core/access.ts';
import { NO_FACTS } from '../../core/audit-queue.ts';
import { isStorable, LIMITS, optional, scopeGlob, strings, time, upTo, upToMany } from '../../verbs/fields.ts';
import { verb } from '../../verbs/verb.ts';
import { memoryExample } from '../../verbs/wire-memory.ts';
import { WEBHOOKS, type Webhook, type Webhooks, type WebhookWithSecret } from './interface.ts';

/*
 * Webhooks (Decision 52), for callers with the grant `admin:*`. They belong to the gateway, and may deliver changes of all users.
 */

const REMEDY =
  'webhooks need OMP_WEBHOOK_SECRET, the tables of this gateway in Postgres or the memory provider, and the audit log';

/** The actions of changes. */
const ACTIONS = ['add', 'update', 'delete', 'erase', 'import'] as const;

/** The gate hides the webhooks of the store from the verbs if it has not these. */
const webhooksOf = (access: Access) => access.service(WEBHOOKS) as Webhooks;

/** What the work answers about a webhook; throws `not_found` if there is none. */
async function about<Result>(
  id: string,
  access: Access,
  work: (webhooks: Webhooks) => Promise<Result | undefined>,
): Promise<Result> {
  const result = isStorable(id) && id.length <= LIMITS.id ? await work(webhooksOf(access)) : undefined;
  if (result === undefined) throw new OmpError('not_found', 'no webhook has this id');
  return result;
}

const logChange = ({ log }: Access, webhook_id: string, { requestId, caller }: Call, message: string): void =>
  log.info({ request_id: requestId, app: caller.app, webhook_id }, message);

const WebhookId = z.object({ id: z.string().meta({ description: 'Id of the webhook.' }) });

const DeliveryFields = z
  .looseObject({
    id: z.string().meta({ description: '`webhook-id`: the same in every attempt for this change.' }),
    type: z.string().meta({ description: '`memory.` and the action of the change, or `webhook.test`.' }),
    at: time('Time of the attempt, UTC.'),
    outcome: z
      .enum(DELIVERY_OUTCOMES)
      .meta({ description: '`delivered`: the receiver answered with a status from 200 to 299.' }),
    status: z.int().nullable().meta({ description: 'HTTP status; null: there was none.' }),
    milliseconds: z.int().meta({ description: 'Duration of the attempt.' }),
  })
  .meta({ id: 'Delivery' });

const WebhookFields = z
  .looseObject({
    id: z.string(),
    url: z.string().meta({ description: 'Where changes are sent.' }),
    users: strings.nullable().meta({ description: 'Only changes of these users; null: of all.' }),
    scope: z.string().nullable().meta({ description: 'Only changes in scopes that match this glob; null: in all.' }),
    actions: strings.nullable().meta({ description: 'Only changes by these actions; null: by all.' }),
    created_at: time('Creation time, UTC.'),
    state: z.enum(['active', 'gone', 'given_up', 'lost']).meta({
      description:
        '`gone`: the receiver answered 410. `given_up`: a day without success. `lost`: the audit log no longer holds the next change.',
    }),
    cursor: z.string().meta({ description: 'Every change up to here was delivered, or is outside the filter.' }),
    failing_since: time('Since when the deliveries fail; null: they do not.').nullable(),
    undelivered: z.int().min(0).meta({ description: 'Changes that were waiting when the deliveries stopped.' }),
    previous_until: time(
      'Before this time the secret before the last rotation signs too; null: no rotation.',
    ).nullable(),
    deliveries: z.array(DeliveryFields).meta({ description: 'The last attempts, newest first.' }),
  })
  .meta({ id: 'Webhook' });

const WebhookWithSecretFields = z
  .looseObject({
    ...WebhookFields.shape,
    secret: z.string().meta({ description: 'The key of the signatures. No other answer has it.' }),
  })
  .meta({ id: 'WebhookWithSecret' });

const newWebhookExample = { url: 'https://example.com/memories', users: ['u1'], scope: 'coding/*', actions: null };
const deliveryExample = {
  id: 'msg_2b4f0c9ad1e35f77',
  type: 'memory.add',
  at: memoryExample.created_at,
  ...{ outcome: 'delivered', status: 204, milliseconds: 31 },
};
const webhookExample = {
  id: 'wh_0c9ad1e35f772b4f0c9ad1e3',
  ...newWebhookExample,
  created_at: memoryExample.created_at,
  ...{ state: 'active', cursor: '0c1d2e3f-791-12', failing_since: null, undelivered: 0, previous_until: null },
  deliveries: [deliveryExample],
};
const secretExample = { ...webhookExample, secret: `whsec_${'x'.repeat(43)}=` };

const withSecret = ({ webhook, secret }: WebhookWithSecret) => ({ ...webhook, secret });

/** What all these verbs have in common. */
const COMMON = {
  needs: ['webhooks'],
  remedy: REMEDY,
  demands: { admin: true },
  facts: () => NO_FACTS,
  consistent: false,
  tag: 'webhooks',
} as const;
/** Errors of a verb about one webhook. */
const errors = ['unsupported_capability', 'not_found'] as const;

export const listWebhooks = verb({
  ...COMMON,
  name: 'list_webhooks',
  method: 'GET',
  path: '/webhooks',
  input: z.object({}),
  feature: 'webhooks',
  run: async (_, access, call) => ({ items: await webhooksOf(access).list(call) }),
  id: 'listWebhooks',
  summary: 'List the webhooks',
  description: 'All of them, oldest first, with their last deliveries. Available if `features.webhooks` is true.',
  success: {
    description: 'The webhooks.',
    schema: z.looseObject({ items: z.array(WebhookFields) }).meta({ id: 'WebhookList' }),
    example: { items: [webhookExample] },
  },
  errors: ['unsupported_capability'],
});

const usersError = `must hold 1 to ${LIMITS.keyUsers} users; leave it out for all`;

/** Strict: a webhook with a misspelt `users` would deliver the changes of every user. */
const WebhookInput = z
  .strictObject({
    url: upTo(2_048).meta({
      description: 'An `https://` address without credentials.',
      examples: [newWebhookExample.url],
    }),
    users: optional(
      upToMany(keyUserSchema, LIMITS.keyUsers, usersError).refine((all) => all.length > 0, usersError),
    ).meta({ description: 'Only changes of these users; null: of all.' }),
    scope: optional(scopeGlob).meta({ description: 'Only changes in scopes that match this glob; null: in all.' }),
    actions: optional(
      upToMany(z.enum(ACTIONS), ACTIONS.length, `must hold at most ${ACTIONS.length} actions`).refine(
        (all) => all.length > 0,
        'must hold an action; leave it out for all',
      ),
    ).meta({ description: 'Only changes by these actions; null: by all.' }),
  })
  .meta({ id: 'NewWebhook' });

/** Throws `invalid_request` for an address that is not allowed, or if there are too many webhooks. */
export const createWebhook = verb({
  ...COMMON,
  name: 'create_webhook',
  method: 'POST',
  path: '/webhooks',
  input: WebhookInput,
  body: { example: newWebhookExample },
  async run({ url, users = null, scope = null, actions = null }, access, call) {
    const created = await webhooksOf(access).create({ url, users, scope, actions }, call);
    logChange(access, created.webhook.id, call, 'a webhook was created');
    return withSecret(created);
  },
  id: 'createWebhook',
  summary: 'Create a webhook',
  description: `Sends each change from now on to the address, signed as Standard Webhooks 1.0 says. Answers the secret, this time
only. Unknown fields are rejected. Available if \`features.webhooks\` is true.`,
  success: {
    status: 201,
    description: 'The webhook.',
    schema: WebhookWithSecretFields,
    example: secretExample,
  },
});

export const deleteWebhook = verb({
  ...COMMON,
  name: 'delete_webhook',
  method: 'DELETE',
  path: '/webhooks/{id}',
  input: WebhookId,
  async run({ id }, access, call) {
    await about(id, access, async (webhooks) => (await webhooks.delete(id, call)) || undefined);
    logChange(access, id, call, 'a webhook was deleted');
  },
  id: 'deleteWebhook',
  summary: 'Delete a webhook',
  description: 'Within seconds nothing more is sent. Available if `features.webhooks` is true.',
  success: { status: 204, description: 'It is deleted.' },
  errors,
});

export const testWebhook = verb({
  ...COMMON,
  name: 'test_webhook',
  method: 'POST',
  path: '/webhooks/{id}/test',
  input: WebhookId,
  run: ({ id }, access, call) => about(id, access, (webhooks) => webhooks.test(id, call)),
  id: 'testWebhook',
  summary: 'Send an event to a webhook',
  description: `Sends an event of the type \`webhook.test\` once, and answers how that ended. Available if \`features.webhooks\`
is true.`,
  success: {
    description: 'How the delivery ended.',
    schema: DeliveryFields,
    example: { ...deliveryExample, type: 'webhook.test' },
  },
  errors,
});

export const resumeWebhook = verb({
  ...COMMON,
  name: 'resume_webhook',
  method: 'POST',
  path: '/webhooks/{id}/resume',
  input: WebhookId.extend({
    from: z.enum(['cursor', 'now']).default('cursor').meta({
      description: '`cursor`: with what was not delivered. `now`: without it.',
    }),
  }),
  async run({ id, from }, access, call) {
    const webhook = await about<Webhook>(id, access, (webhooks) => webhooks.resume({ id, from }, call));
    logChange(access, id, call, 'a webhook was resumed');
    return webhook;
  },
  id: 'resumeWebhook',
  summary: 'Resume the deliveries of a webhook',
  description: `Of one that has stopped, or that pauses after failures. Available if \`features.webhooks\` is true.`,
  success: { description: 'The webhook.', schema: WebhookFields, example: webhookExample },
  errors: ['invalid_request', ...errors],
});

export const rotateWebhook = verb({
  ...COMMON,
  name: 'rotate_webhook',
  method: 'POST',
  path: '/webhooks/{id}/rotate',
  input: WebhookId,
  async run({ id }, access, call) {
    const rotated = await about(id, access, (webhooks) => webhooks.rotate(id, call));
    logChange(access, id, call, 'the secret of a webhook was rotated');
    return withSecret(rotated);
  },
  id: 'rotateWebhook',
  summary: 'Make a new secret for a webhook',
  description: `Answers the new secret, this time only. For 24 hours each delivery is signed with the one before too; rotated twice,
the old one signs no more. Available if \`features.webhooks\` is true.`,
  success: { description: 'The webhook.', schema: WebhookWithSecretFields, example: secretExample },
  errors,
});
