/** API keys, webhooks and what embedding costs, which callers with the grant `admin:*` manage. */

export interface NewKey {
  /** Unique, also among revoked keys. */
  name: string;
  /** `<action>:<scope glob>`, or `admin:*`. */
  grants: string[];
  /** Users whose memories it may access; null: all. */
  users?: string[] | null;
  /** A date, from 00:00 UTC on, or a date-time with offset; null: never. */
  expires_at?: string | null;
  /** Whether what it writes is marked with `x-omp-untrusted`; default false. */
  untrusted?: boolean | null;
}

/** A key without its secret. */
export interface Key {
  /** The public part of the key. */
  id: string;
  name: string;
  grants: string[];
  users: string[] | null;
  /** Of gateways that mark what untrusted keys write. */
  untrusted?: boolean;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  /** Accurate to about a minute; null: never. */
  last_used_at: string | null;
}

export interface CreatedKey extends Key {
  /** The key itself. No other answer has it. */
  key: string;
}

export interface KeysQuery {
  limit?: number;
  cursor?: string;
}

export type ChangeAction = 'add' | 'update' | 'delete' | 'erase' | 'import';

export interface NewWebhook {
  /** An `https://` address without credentials. */
  url: string;
  /** Only changes of these users; null: of all. */
  users?: string[] | null;
  /** Only changes in scopes that match this glob; null: in all. */
  scope?: string | null;
  /** Only changes by these actions; null: by all. */
  actions?: ChangeAction[] | null;
}

/** One attempt to deliver a change. */
export interface Delivery {
  /** `webhook-id`: the same in every attempt for this change. */
  id: string;
  /** `memory.` and the action of the change, or `webhook.test`. */
  type: string;
  at: string;
  outcome: 'delivered' | 'rejected' | 'gone' | 'timeout' | 'unreachable' | 'address_denied' | 'secret_unreadable';
  /** HTTP status; null: there was none. */
  status: number | null;
  milliseconds: number;
}

export interface Webhook {
  id: string;
  url: string;
  users: string[] | null;
  scope: string | null;
  actions: string[] | null;
  created_at: string;
  /** `gone`: the receiver answered 410. `given_up`: a day without success. `lost`: the log no longer holds the next change. */
  state: 'active' | 'gone' | 'given_up' | 'lost';
  /** Every change up to here was delivered, or is outside the filter. */
  cursor: string;
  /** Null: the deliveries do not fail. */
  failing_since: string | null;
  /** Changes that were waiting when the deliveries stopped. */
  undelivered: number;
  /** Before this time the secret before the last rotation signs too; null: no rotation. */
  previous_until: string | null;
  /** The last attempts, newest first. */
  deliveries: Delivery[];
}

export interface WebhookWithSecret extends Webhook {
  /** `whsec_…`. No other answer has it. */
  secret: string;
}

export interface EmbeddingUsageQuery {
  /** First and last day, UTC, `YYYY-MM-DD`; default: the last 30 days. */
  since?: string | undefined;
  until?: string | undefined;
  cursor?: string | undefined;
}

export interface EmbeddingUsageTotals {
  texts: number;
  /** Null: unknown, because the service did not report all. */
  tokens: number | null;
  /** With retries and failures. */
  requests: number;
}

/** What one caller used on one day. */
export interface EmbeddingUsageRow extends EmbeddingUsageTotals {
  day: string;
  /** Name of the key or subject of the token; null: anonymous, or the gateway itself. */
  app: string | null;
  model: string;
}

/** What embedding costs. */
export interface EmbeddingUsage {
  since: string;
  until: string;
  /** What was used before is not known; null: all is stored. */
  counted_since: string | null;
  /** Newest day first. */
  items: EmbeddingUsageRow[];
  /** Of this page. */
  totals: EmbeddingUsageTotals;
  /** Null: this is the last page. */
  next_cursor?: string | null;
}
