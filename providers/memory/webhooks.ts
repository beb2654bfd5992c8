import type { StoredWebhook, WebhookPatch, WebhookStore } from '#provider';

/** The webhooks of this process, which is the only one that delivers. */
export function createWebhookStore(): WebhookStore {
  const webhooks = new Map<string, StoredWebhook>();
  const leases = new Map<string, string>();
  const change = (id: string, patch: WebhookPatch): StoredWebhook | undefined => {
    const webhook = webhooks.get(id);
    const changed = webhook && { ...webhook, ...patch };
    if (changed) webhooks.set(id, changed);
    return changed;
  };
  return {
    list: async () => [...webhooks.values()],
    find: async (id) => webhooks.get(id),
    async create({ webhook, most }) {
      if (webhooks.size >= most) return false;
      webhooks.set(webhook.id, webhook);
      return true;
    },
    async change({ id, patch }) {
      leases.delete(id);
      return change(id, patch);
    },
    async delete(id) {
      leases.delete(id);
      return webhooks.delete(id);
    },
    async claim() {
      return [...webhooks.values()].flatMap((webhook) => {
        if (webhook.state !== 'active') return [];
        const lease = leases.get(webhook.id) ?? crypto.randomUUID();
        leases.set(webhook.id, lease);
        return [{ webhook, lease }];
      });
    },
    save: async ({ id, lease, patch }) => leases.get(id) === lease && change(id, patch) !== undefined,
    release: async () => leases.clear(),
  };
}
