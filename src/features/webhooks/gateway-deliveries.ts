import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { backgroundCall, type ChangePart, type DeliveryOutcome, type Provider } from '#contract';
import type { ChangeFeed, Follower } from '../../core/change-feed.ts';
import type { DeliveryStats } from './interface.ts';
import { type DeliveryContext, openWebhookDeliveries, type WebhookDeliveries } from './webhook-deliveries.ts';

export interface GatewayDeliveryOptions extends Omit<DeliveryContext, 'signal' | 'read' | 'count'> {
  readonly changes: NonNullable<Provider['changes']>;
  /** Tells when there may be new changes. */
  readonly feed: Pick<ChangeFeed, 'follow'>;
}

export interface GatewayDeliveries {
  /** Looks for new and changed webhooks at once. */
  kick(): void;
  stats(): DeliveryStats;
  /** Lets running deliveries end for a moment, stores the progress, and ends the leases. */
  close(): Promise<void>;
}

/** Interval at which webhooks are claimed and leases are renewed, in milliseconds. */
const ROUND_MS = 5_000;
const LEASE_SECONDS = 30;
/** When a follower of the feed makes place for another one, in milliseconds. */
const FOLLOW_MS = 3_600_000;
/** Changes in one reading of the feed. */
const PART = 200;
/** How long running deliveries may take when the gateway stops, in milliseconds. */
const LAST_MS = 3_000;

/**
 * Delivers the changes of the feed to the webhooks that this gateway holds, until it is closed. A change counts as delivered once the
 * receiver has answered with success: a gateway that dies before that repeats it. Of one user, a change is sent after those before it were
 * delivered, so whatever is repeated, the first copies arrive in order.
 */
export function startDeliveries({ changes, feed, ...options }: GatewayDeliveryOptions): GatewayDeliveries {
  const { store, log } = options;
  const holder = randomUUID();
  const stop = new AbortController();
  // Node warns of a leak from the eleventh delivery on.
  setMaxListeners(0, stop.signal);
  /** By lease: a webhook that was changed has another one. */
  const byLease = new Map<string, WebhookDeliveries>();
  const deliveries: Partial<Record<DeliveryOutcome, number>> = {};
  let parts = new Map<string, Promise<ChangePart>>();
  const context: DeliveryContext = {
    ...options,
    signal: stop.signal,
    /** Webhooks that have delivered everything stand at the same cursor: the feed is read once for all of them. */
    read(after) {
      const running = parts.get(after);
      if (running) return running;
      const shared = parts;
      const query = { after, limit: PART, users: null, within: null };
      const part = changes(query, backgroundCall('webhooks')).finally(() => shared.delete(after));
      parts.set(after, part);
      return part;
    },
    count(outcome) {
      deliveries[outcome] = (deliveries[outcome] ?? 0) + 1;
    },
  };

  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let follower: Follower | undefined;
  const wakeAll = () => {
    // A part that is being read may lack the change.
    parts = new Map();
    for (const { wake } of byLease.values()) wake();
  };
  /** Wakes the deliveries of all webhooks, until there are none or the follower ends. */
  const follow = async () => {
    const current = await feed.follow({ users: null, within: null }, FOLLOW_MS);
    follower = current;
    wakeAll();
    void (async () => {
      while (await current.next()) wakeAll();
      if (follower === current) unfollow();
    })();
  };
  const unfollow = () => {
    const { close } = follower ?? {};
    follower = undefined;
    close?.();
  };
  const round = async () => {
    clearTimeout(timer);
    try {
      const leases = await store.claim({ holder, seconds: LEASE_SECONDS }, backgroundCall('webhooks'));
      const held = new Set(leases.map(({ lease }) => lease));
      if (held.size === 0) unfollow();
      else if (!follower && !closed) await follow();
      for (const [lease, own] of byLease) {
        if (!held.has(lease) && byLease.delete(lease)) void own.end();
      }
      for (const one of leases) {
        if (!closed && !byLease.has(one.lease)) byLease.set(one.lease, openWebhookDeliveries(one, context));
      }
    } catch (err) {
      log.warn({ err }, 'the webhooks could not be read; they will be tried again');
    }
    if (!closed) timer = setTimeout(kick, ROUND_MS).unref();
  };
  let running = round();
  const kick = () => {
    if (!closed) running = running.then(round);
  };

  return {
    kick,
    stats: () => {
      const now = Date.now();
      return { deliveries, lag: Math.max(0, ...[...byLease.values()].map(({ lag }) => lag(now))) / 1_000 };
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      const last = setTimeout(() => stop.abort(new Error('closing')), LAST_MS);
      await running;
      unfollow();
      await Promise.all([...byLease.values()].map(({ end }) => end()));
      clearTimeout(last);
      await store.release(holder, backgroundCall('webhooks')).catch(() => {});
    },
  };
}
