/** Things with a lifetime, in buckets by their time: a bucket is evicted at once, without a look at what is in it. */
export interface TimeBuckets<Bucket> {
  /** The bucket of this moment, in milliseconds since 1970. */
  at(time: number): Bucket;
  newestFirst(): Bucket[];
}

/** Buckets of one lifetime. Things stay longer than that by one bucket at most. */
const PARTS = 24;

/**
 * `lifetime` in milliseconds; infinite: one bucket that is never evicted. Also evicts what is more than `ahead` in the
 * future: the clock was wrong when it was added.
 */
export function createTimeBuckets<Bucket>(
  lifetime: number,
  make: () => Bucket,
  ahead = Number.POSITIVE_INFINITY,
): TimeBuckets<Bucket> {
  const span = lifetime / PARTS;
  const buckets = new Map<number, Bucket>();
  const evict = () => {
    const oldest = place(Date.now() - lifetime);
    const newest = place(Date.now() + ahead);
    for (const number of buckets.keys()) if (number < oldest || number > newest) buckets.delete(number);
  };
  const place = (time: number): number => (span === Number.POSITIVE_INFINITY ? 0 : Math.floor(time / span));
  return {
    at(time) {
      evict();
      const known = buckets.get(place(time));
      if (known) return known;
      const bucket = make();
      buckets.set(place(time), bucket);
      return bucket;
    },
    newestFirst() {
      evict();
      return [...buckets].sort(([a], [b]) => b - a).map(([, bucket]) => bucket);
    },
  };
}
