export type MetadataValue = string | number | boolean | readonly string[];
export type Metadata = Readonly<Record<string, MetadataValue>>;

/** A record as it is kept. */
export interface Stored {
  /** 32-bit floats, as the service keeps them. */
  readonly values: Float32Array;
  readonly metadata?: Metadata;
}

/** Records by id, and their ids in byte order. */
export interface RecordSet {
  readonly size: number;
  get(id: string): Stored | undefined;
  set(id: string, record: Stored): void;
  delete(id: string): void;
  entries(): Iterable<[string, Stored]>;
  /** Up to `limit` ids that begin with `prefix` and come after `skipPast`, in byte order. */
  ids(prefix: string, skipPast: string, limit: number): string[];
}

export function createRecordSet(): RecordSet {
  const records = new Map<string, Stored>();
  // Ids are ASCII, so that JavaScript's order of strings is that of their bytes.
  const sorted: string[] = [];
  /** Where `id` is, or would be put. */
  const placeOf = (id: string): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle] as string) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return {
    get size() {
      return records.size;
    },
    get: (id) => records.get(id),
    set: (id, record) => {
      if (!records.has(id)) sorted.splice(placeOf(id), 0, id);
      records.set(id, record);
    },
    delete: (id) => {
      if (records.delete(id)) sorted.splice(placeOf(id), 1);
    },
    entries: () => records.entries(),
    ids: (prefix, skipPast, limit) => {
      const from = placeOf(skipPast < prefix ? prefix : skipPast);
      const start = sorted[from] === skipPast ? from + 1 : from;
      const page = sorted.slice(start, start + limit);
      const end = page.findIndex((id) => !id.startsWith(prefix));
      return end < 0 ? page : page.slice(0, end);
    },
  };
}
