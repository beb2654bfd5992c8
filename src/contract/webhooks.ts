import type { Call } from './call.ts';

/** How one attempt to deliver a change ended. */
export const DELIVERY_OUTCOMES = [
  // A status from 200 to 299.
  'delivered',
  // Another status, redirects included.
  'rejected',
  // Status 410: the receiver wants nothing more.
  'gone',
  // No status before the deadline.
  'timeout',
  // No connection, or no answer in HTTP.
  'unreachable',
  // The name of the receiver leads to an address that is not allowed.
  'address_denied',
  // The stored secret cannot be decrypted.
  'secret_unreadable',
] as const;
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

/** One attempt to deliver a change. */
export interface Delivery {
  /** `webhook-id`: the same in every attempt for this change. */
  readonly id: string;
  /** The type of the event, such as `memory.add`. */
  readonly type: string;
  readonly at: string;
  readonly outcome: DeliveryOutcome;
  /** HTTP status; null: there was none. */
  readonly status: number | null;
  readonly milliseconds: number;
}

/** A cursor of the change feed with an address. All times ISO 8601, UTC, milliseconds, `Z`. */
export interface StoredWebhook {
  readonly id: string;
  readonly url: string;
  /** Only changes of these users, in scopes that match this glob, by these actions; null: all. */
  readonly users: readonly string[] | null;
  readonly scope: string | null;
  readonly actions: readonly string[] | null;
  readonly created_at: string;
  /** Encrypted, as is the previous one, which signs too before `previous_until`. */
  readonly secret: string;
  readonly previous_secret: string | null;
  readonly previous_until: string | null;
  /** `gone`: the receiver answered 410. `given_up`: a day without success. `lost`: the log no longer holds what comes next. */
  readonly state: 'active' | 'gone' | 'given_up' | 'lost';
  /** Every change up to here was delivered, or is outside the filter. */
  readonly cursor: string;
  /** Since when attempts for the change after the cursor fail; null: they do not. */
  readonly failing_since: string | null;
  /** Changes that were not delivered when the deliveries stopped. */
  readonly undelivered: number;
  /** The last attempts, newest first. */
  readonly deliveries: readonly Delivery[];
}

export type WebhookPatch = Partial<Omit<StoredWebhook, 'id' | 'url' | 'created_at'>>;

/** The lease of one gateway on a webhook. */
export interface WebhookLease {
  readonly webhook: StoredWebhook;
  /** Unique: whoever takes the webhook next has another one, and so has the same gateway after a change by somebody else. */
  readonly lease: string;
}

/**
 * The webhooks of a store. One gateway at a time delivers the changes for a webhook: it holds a lease on it. (An advisory lock would need a
 * session of its own, which poolers of connections do not give.)
 */
export interface WebhookStore {
  /** Oldest first. */
  list(call: Call): Promise<StoredWebhook[]>;
  find(id: string, call: Call): Promise<StoredWebhook | undefined>;
  /** False: `most` webhooks exist already. */
  create(request: { readonly webhook: StoredWebhook; readonly most: number }, call: Call): Promise<boolean>;
  /** Also ends the lease. Undefined: there is no such webhook. */
  change(
    request: { readonly id: string; readonly patch: WebhookPatch },
    call: Call,
  ): Promise<StoredWebhook | undefined>;
  delete(id: string, call: Call): Promise<boolean>;
  /**
   * Leases the active webhooks that nobody holds for so many seconds, and renews the leases of this holder. Returns all that it holds
   * then.
   */
  claim(request: { readonly holder: string; readonly seconds: number }, call: Call): Promise<WebhookLease[]>;
  /** Stores the progress of the deliveries. False: the lease has ended. */
  save(
    request: Pick<WebhookLease, 'lease'> & { readonly id: string; readonly patch: WebhookPatch },
    call: Call,
  ): Promise<boolean>;
  /** Ends all leases of the holder. */
  release(holder: string, call: Call): Promise<void>;
}
