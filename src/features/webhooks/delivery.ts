import { createHash } from 'node:crypto';
import type { Change, Delivery, StoredWebhook } from '#contract';
import { type Answer, createPost, type Post, type PostOptions } from './post.ts';
import { createVault, type Vault } from './secrets.ts';
import { type Message, signedHeaders } from './signature.ts';

/** What an attempt needs: the requests, and the secrets that sign. */
export interface DeliveryTools {
  readonly post: Post;
  readonly vault: Vault;
}

export interface DeliveryOptions extends PostOptions {
  /** OMP_WEBHOOK_SECRET. */
  readonly secret: string;
}

export const createDeliveryTools = ({ secret, ...options }: DeliveryOptions): DeliveryTools => ({
  post: createPost(options),
  vault: createVault(secret),
});

export interface Event extends Message {
  /** Such as `memory.add`. */
  readonly type: string;
}

/** The event of a change: thin, without contents. Its id is the same whenever and by whichever gateway it is sent. */
export function eventOf(webhook: Pick<StoredWebhook, 'id'>, { key, action, at, ...change }: Change): Event {
  const { id, user_id, scope, caller } = change;
  const type = `memory.${action}`;
  const data = { id, action, user_id, scope, at, caller };
  const hash = createHash('sha256').update(`${webhook.id} ${key}`).digest('base64url').slice(0, 32);
  return { id: `msg_${hash}`, type, body: JSON.stringify({ type, timestamp: at, data }) };
}

/** One attempt; `retry-schedule.ts` says when there is another, `webhook-deliveries.ts` when it stops. Rejects only if the signal aborts. */
export async function deliver(
  webhook: StoredWebhook,
  { id, type, body }: Event,
  { post, vault }: DeliveryTools,
  signal: AbortSignal,
): Promise<Delivery & Pick<Answer, 'retryAfter'>> {
  const now = Date.now();
  const attempt = { id, type, at: new Date(now).toISOString() };
  let secrets: string[];
  try {
    secrets = secretsOf(webhook, now).map((sealed) => vault.open(webhook.id, sealed));
  } catch {
    return { ...attempt, outcome: 'secret_unreadable', status: null, milliseconds: 0 };
  }
  const started = performance.now();
  const answer = await post.send(webhook.url, signedHeaders({ id, body }, secrets, now), body, signal);
  return { ...attempt, ...answer, milliseconds: Math.round(performance.now() - started) };
}

/** The stored secrets that sign, newest first. */
function secretsOf({ secret, previous_secret, previous_until }: StoredWebhook, now: number): string[] {
  const both = previous_secret !== null && Date.parse(previous_until ?? '') > now;
  return both ? [secret, previous_secret] : [secret];
}
