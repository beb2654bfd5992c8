/** Counts requests, in one process or for all replicas. */
export interface RateLimiter {
  /** Requests per minute. */
  readonly limit: number;
  /** Counts one request of a caller or address, unless it exceeds the limit. */
  take(key: string): Promise<RateLimitResult>;
}

export interface RateLimitResult {
  readonly allowed: boolean;
  /** Remaining requests, 0 or more. */
  readonly remaining: number;
  /** Seconds until one more request is allowed, rounded up, 1 to about 60. */
  readonly reset: number;
}
