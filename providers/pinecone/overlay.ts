import type { Log, Point } from '#provider';
import type { Lsn } from './client/client.ts';

/** A record as this process wrote it. */
export interface WrittenPoint extends Point {
  /** Whose it is: a user, or what stands for one. */
  readonly owner: string;
}

interface WritePosition {
  readonly namespace: string;
  readonly lsn: Lsn;
}

/**
 * The recent writes of this process, which reads may not show yet: every read is merged with them. An entry is dropped when
 * it is old enough for every read to show it, and the oldest are dropped when there are too many.
 */
export interface Overlay {
  /** Undefined: no recent write; null: deleted. */
  get(id: string): WrittenPoint | null | undefined;
  put(write: WrittenPoint, where: WritePosition): void;
  bury(record: Pick<WrittenPoint, 'id' | 'owner'>, where: WritePosition): void;
  /**
   * The recent writes of one user, or of all, in any order. `position`: that of a query's answer. With it only later writes are returned: for
   * earlier ones the index is right, also about writes of other gateways.
   */
  of(owner?: string, position?: Lsn): { readonly live: readonly WrittenPoint[]; readonly deleted: ReadonlySet<string> };
  close(): void;
}

interface OverlayOptions {
  /** How long a write is kept at least, in milliseconds, unless there are too many. */
  readonly settle_ms: number;
  /** Whether queries are known to show a write. */
  readonly shows: (namespace: string, lsn: number) => boolean;
  readonly log: Log;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
  readonly max_entries?: number;
  readonly max_bytes?: number;
}

/** At Pinecone's 100 upserts a second, 12,000 are written in the two minutes of the default `settle_ms`. */
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** Measured bytes of an entry besides the vector and the text. Filled to `MAX_BYTES` the overlay took 34 to 64 MiB. */
const ENTRY_BYTES = 400;
const TOMBSTONE_BYTES = 450;

/**
 * A write that no query has shown is kept this many times `settle_ms`, but no longer, since it would hide later writes of
 * other gateways. A deletion is final, so it is kept while there is room.
 */
const MAX_SETTLE_TIMES = 5;

const SWEEP_MS = 5_000;
const WARN_MS = 60_000;

interface Entry {
  /** Null: deleted. */
  readonly write: WrittenPoint | null;
  readonly owner: string;
  readonly where: WritePosition;
  readonly at: number;
  readonly bytes: number;
}

/** The overlay is in memory only: after a restart everything is read from Pinecone. */
export function createOverlay(options: OverlayOptions): Overlay {
  const { settle_ms, shows, log, now = () => performance.now() } = options;
  const { max_entries = MAX_ENTRIES, max_bytes = MAX_BYTES } = options;
  /** Oldest write first. */
  const entries = new Map<string, Entry>();
  const users = new Map<string, Map<string, Entry>>();
  let bytes = 0;
  const warn = createWarning(log, now);

  /** Fetch and list report no position, so a write is kept for `settle_ms` even if queries show it sooner. */
  const isNeeded = ({ write, at, where: { namespace, lsn } }: Entry): boolean => {
    const age = now() - at;
    if (age < settle_ms) return true;
    if (lsn === undefined || shows(namespace, lsn)) return false;
    return write === null || age < settle_ms * MAX_SETTLE_TIMES;
  };
  const remove = (id: string): void => {
    const entry = entries.get(id);
    if (!entry) return;
    entries.delete(id);
    bytes -= entry.bytes;
    const ofUser = users.get(entry.owner);
    ofUser?.delete(id);
    if (ofUser?.size === 0) users.delete(entry.owner);
  };
  const keep = (id: string, entry: Entry): void => {
    remove(id);
    entries.set(id, entry);
    bytes += entry.bytes;
    const ofUser = users.get(entry.owner);
    if (ofUser) ofUser.set(id, entry);
    else users.set(entry.owner, new Map([[id, entry]]));
    let losses = 0;
    for (const [oldest, { at }] of entries) {
      if (entries.size <= max_entries && bytes <= max_bytes) break;
      if (now() - at < settle_ms) losses += 1;
      remove(oldest);
    }
    if (losses > 0) warn(losses);
  };
  const sweep = () => {
    for (const [id, entry] of entries) if (!isNeeded(entry)) remove(id);
  };
  const sweeping = setInterval(sweep, SWEEP_MS).unref();

  return {
    get(id) {
      const entry = entries.get(id);
      return entry && isNeeded(entry) ? entry.write : undefined;
    },
    put(write, where) {
      const { id, owner } = write;
      keep(id, { write, owner, where, at: now(), bytes: sizeOf(write) });
    },
    bury: ({ id, owner }, where) => keep(id, { write: null, owner, where, at: now(), bytes: TOMBSTONE_BYTES }),
    of(owner, position) {
      const live: WrittenPoint[] = [];
      const deletedIds = new Set<string>();
      for (const [id, entry] of (owner === undefined ? entries : users.get(owner)) ?? []) {
        const isShown = position !== undefined && entry.where.lsn !== undefined && entry.where.lsn <= position;
        if (isShown || !isNeeded(entry)) continue;
        if (entry.write) live.push(entry.write);
        else deletedIds.add(id);
      }
      return { live, deleted: deletedIds };
    },
    close: () => clearInterval(sweeping),
  };
}

/** Counts text as UTF-16; most of it takes half as much. */
const sizeOf = ({ vector, ...rest }: WrittenPoint): number =>
  ENTRY_BYTES + vector.byteLength + 2 * JSON.stringify(rest).length;

/** Warns of writes dropped too early, which reads may miss. At most once a minute, with the number since the last warning. */
function createWarning(log: Log, now: () => number): (count: number) => void {
  let pending = 0;
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (count) => {
    pending += count;
    if (now() - warnedAt < WARN_MS) return;
    warnedAt = now();
    log.warn({ forgotten: pending }, 'recent writes were dropped early; reads may not show them yet');
    pending = 0;
  };
}
