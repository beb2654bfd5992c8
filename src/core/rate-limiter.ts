/** Counts requests. Implementations share the count between replicas, or do not. */
export interface RateLimiter {
  /** Requests per minute. */
  readonly limit: number;
  /** Counts one request of this caller or address, unless it is one too many. */
  take(key: string): Promise<Taken>;
}

export interface Taken {
  readonly allowed: boolean;
  /** Requests left now, 0 or more. */
  readonly remaining: number;
  /** Seconds, rounded up, 1 to about 60, until one more is left: a refused request is admitted then. */
  readonly reset: number;
}
