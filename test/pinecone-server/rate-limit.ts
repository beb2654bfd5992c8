import { Refusal } from './refusal.ts';

const WINDOW_MS = 1_000;

/** Counts requests by key over the last second. Throws the 429 that names the limit when there were `most` already. */
export function createRateLimit(most: number, name: string): (key: string) => void {
  const seen = new Map<string, number[]>();
  return (key) => {
    const now = performance.now();
    const recent = (seen.get(key) ?? []).filter((time) => now - time < WINDOW_MS);
    if (recent.length >= most) {
      throw new Refusal(429, `Request failed. You've reached the ${name} limit for namespace ${key}`);
    }
    seen.set(key, [...recent, now]);
  };
}
