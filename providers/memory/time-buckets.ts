/** Items with a lifetime, in buckets by time. Evicts whole buckets, without reading their items. */
export interface TimeBuckets<Bucket> {
  /** The bucket of this moment, in milliseconds since 1970. */
  at(time: number): Bucket;
  newestFirst(): Bucket[];
}

/** Buckets per lifetime. An item stays longer than its lifetime by at most one bucket. */
const PARTS = 24;

/**
 * `lifetime` in milliseconds; infinite: one bucket that is never evicted. Also evicts items more than `ahead` in the future,
 * which were added while the clock was wrong.
 */
export function createTimeBuckets<Bucket>(
  lifetime: number,
  make: () => Bucket,
  ahead = Number.POSITIVE_INFINITY,
): TimeBuckets<Bucket> {
  const span = lifetime / PARTS;
  const buckets = new Map<number, Bucket>();
  const evict = () => {
    const oldest = numberOf(Date.now() - lifetime);
    const newest = numberOf(Date.now() + ahead);
    for (const number of buckets.keys()) if (number < oldest || number > newest) buckets.delete(number);
  };
  const numberOf = (time: number): number => (span === Number.POSITIVE_INFINITY ? 0 : Math.floor(time / span));
  return {
    at(time) {
      evict();
      const existing = buckets.get(numberOf(time));
      if (existing) return existing;
      const bucket = make();
      buckets.set(numberOf(time), bucket);
      return bucket;
    },
    newestFirst() {
      evict();
      return [...buckets].sort(([a], [b]) => b - a).map(([, bucket]) => bucket);
    },
  };
}
