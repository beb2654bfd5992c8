import { randomBytes, randomUUID } from 'node:crypto';
import {
  type Call,
  invalidRequest,
  type Log,
  type OpenWebhooks,
  type Provider,
  type StoredWebhook,
  type WebhookPatch,
} from '#contract';
import { createDeliveryTools, type DeliveryOptions, type DeliveryTools, deliver } from './delivery.ts';
import { type GatewayDeliveries, type GatewayDeliveryOptions, startDeliveries } from './gateway-deliveries.ts';
import type { DeliveryStats, Webhook, Webhooks } from './interface.ts';
import { newSecret } from './secrets.ts';

export interface WebhookOptions extends DeliveryTools, Pick<OpenWebhooks, 'webhooks' | 'changes'> {
  /** Called when a webhook was created or changed. */
  changed?(): void;
}

const MAX_WEBHOOKS = 50;
/** For how long the secret before signs too, in milliseconds. */
const OVERLAP_MS = 86_400_000;

export function createWebhooks({ webhooks: store, changes, post, vault, changed }: WebhookOptions): Webhooks {
  const endOfFeed = async (call: Call): Promise<string> =>
    (await changes({ after: 'now', limit: 1, users: null, within: null }, call)).next;
  const change = async (id: string, patch: WebhookPatch, call: Call): Promise<Webhook | undefined> => {
    const webhook = await store.change({ id, patch }, call);
    if (webhook) changed?.();
    return webhook && withoutSecrets(webhook);
  };
  /** Not if OMP_WEBHOOK_SECRET was another one: the secret then is lost. */
  const isReadable = ({ id, secret }: StoredWebhook): boolean => {
    try {
      return vault.open(id, secret) !== '';
    } catch {
      return false;
    }
  };
  return {
    list: async (call) => (await store.list(call)).map(withoutSecrets),
    async create({ url, ...filter }, call) {
      const id = `wh_${randomBytes(12).toString('hex')}`;
      const secret = newSecret();
      const webhook: StoredWebhook = {
        id,
        url: post.requireUrl(url),
        ...filter,
        created_at: new Date().toISOString(),
        ...{ secret: vault.seal(id, secret), previous_secret: null, previous_until: null },
        ...{ state: 'active', cursor: await endOfFeed(call), failing_since: null, undelivered: 0, deliveries: [] },
      };
      const created = await store.create({ webhook, most: MAX_WEBHOOKS }, call);
      if (!created) throw invalidRequest(`there are ${MAX_WEBHOOKS} webhooks already; delete one`);
      changed?.();
      return { webhook: withoutSecrets(webhook), secret };
    },
    delete: (id, call) => store.delete(id, call),
    async test(id, call) {
      const webhook = await store.find(id, call);
      if (!webhook) return undefined;
      const [type, timestamp] = ['webhook.test', new Date().toISOString()];
      const body = JSON.stringify({ type, timestamp, data: {} });
      const { retryAfter: _, ...delivery } = await deliver(
        webhook,
        { id: `msg_${randomUUID()}`, type, body },
        { post, vault },
        call.signal,
      );
      return delivery;
    },
    async resume({ id, from }, call) {
      const active = { state: 'active', failing_since: null, undelivered: 0 } as const;
      return change(id, from === 'now' ? { ...active, cursor: await endOfFeed(call) } : active, call);
    },
    async rotate(id, call) {
      const before = await store.find(id, call);
      if (!before) return undefined;
      const secret = newSecret();
      const previous_until = new Date(Date.now() + OVERLAP_MS).toISOString();
      const previous_secret = isReadable(before) ? before.secret : null;
      const patch = { secret: vault.seal(id, secret), previous_secret, previous_until };
      const webhook = await change(id, patch, call);
      return webhook && { webhook, secret };
    },
  };
}

const withoutSecrets = ({ secret: _, previous_secret: __, ...webhook }: StoredWebhook): Webhook => webhook;

export interface WebhookSettings {
  readonly webhooks: { readonly secret?: string | undefined; readonly private: 'on' | 'off' };
}

/** The settings of deliveries; undefined: there are no webhooks. */
export const deliveryOptions = ({ webhooks: { secret, private: allowed } }: WebhookSettings) =>
  secret === undefined ? undefined : { secret, allow_private: allowed === 'on' };

/** The webhooks of a gateway: what manages them, and what delivers. */
export interface GatewayWebhooks extends Webhooks {
  start(feed: GatewayDeliveryOptions['feed']): GatewayDeliveries;
  stats(): DeliveryStats;
}

/** Undefined: the store keeps no webhooks, or has no feed of changes. */
export function openWebhooks(
  { pause, ...options }: DeliveryOptions & Pick<GatewayDeliveryOptions, 'pause'>,
  { webhooks, changes }: Pick<Provider, 'webhooks' | 'changes'>,
  log: Log,
): GatewayWebhooks | undefined {
  if (!webhooks || !changes) return undefined;
  const tools = createDeliveryTools(options);
  let deliveries: GatewayDeliveries | undefined;
  return {
    ...createWebhooks({ webhooks, changes, ...tools, changed: () => deliveries?.kick() }),
    stats: () => deliveries?.stats() ?? { deliveries: {}, lag: 0 },
    start(feed) {
      deliveries = startDeliveries({ store: webhooks, changes, feed, log, pause, ...tools });
      return deliveries;
    },
  };
}
