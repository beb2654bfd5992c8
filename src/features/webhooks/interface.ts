import type { Call, Delivery, DeliveryOutcome, StoredWebhook } from '#contract';
import type { ServiceKey } from '../../core/services.ts';

/** A webhook without its secrets. */
export type Webhook = Omit<StoredWebhook, 'secret' | 'previous_secret'>;

export type NewWebhook = Pick<StoredWebhook, 'url' | 'users' | 'scope' | 'actions'>;

/** A webhook with its new secret, which no other answer has. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  readonly secret: string;
}

/** Manages the webhooks of a store (Decision 52). Undefined: there is no such webhook. */
export interface Webhooks {
  /** Oldest first. */
  list(call: Call): Promise<Webhook[]>;
  /** Delivers what changes from now on. Throws `invalid_request` for an address that is not allowed, or if there are too many. */
  create(input: NewWebhook, call: Call): Promise<WebhookWithSecret>;
  delete(id: string, call: Call): Promise<boolean>;
  /** Sends an event of the type `webhook.test` at once, also if the deliveries have stopped. */
  test(id: string, call: Call): Promise<Delivery | undefined>;
  /** Delivers again, without a pause. `now`: without what was not delivered. */
  resume(request: { readonly id: string; readonly from: 'cursor' | 'now' }, call: Call): Promise<Webhook | undefined>;
  /** Makes a new secret. The one before signs too, for 24 hours. */
  rotate(id: string, call: Call): Promise<WebhookWithSecret | undefined>;
}

export const WEBHOOKS: ServiceKey<Webhooks> = { name: 'webhooks' };

/** Deliveries of this process, for the metrics. */
export interface DeliveryStats {
  readonly deliveries: Readonly<Partial<Record<DeliveryOutcome, number>>>;
  /** The age of the oldest change that is not delivered, in seconds. */
  readonly lag: number;
}
