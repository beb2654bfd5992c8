import type { Log, Memory } from '#provider';
import { newestFirst } from '#provider';
import type { Lsn } from './client/client.ts';

/** A record as this process wrote it. */
export interface RecentWrite {
  readonly memory: Memory;
  /** All zeros if the embedder found nothing in the text. */
  readonly vector: Float32Array;
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
  get(id: string): RecentWrite | null | undefined;
  put(write: RecentWrite, where: WritePosition): void;
  bury(memory: Memory, where: WritePosition): void;
  /**
   * The recent writes of one user; `live` in the order of lists, newest first. `position`: that of a query's answer.
   * With it only later writes are returned: for earlier ones the index is right, also about writes of other gateways.
   */
  of(user_id: string, position?: Lsn): { readonly live: readonly RecentWrite[]; readonly deleted: ReadonlySet<string> };
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

interface OverlayEntry {
  /** Null: deleted. */
  readonly write: RecentWrite | null;
  readonly user_id: string;
  readonly where: WritePosition;
  readonly at: number;
  readonly bytes: number;
}

/** The overlay is in memory only: after a restart everything is read from Pinecone. */
export function createOverlay(options: OverlayOptions): Overlay {
  const { settle_ms, shows, log, now = () => performance.now() } = options;
  const { max_entries = MAX_ENTRIES, max_bytes = MAX_BYTES } = options;
  /** Oldest write first. */
  const entries = new Map<string, OverlayEntry>();
  const users = new Map<string, Map<string, OverlayEntry>>();
  let bytes = 0;
  const warn = createWarning(log, now);

  /** Fetch and list report no position, so a write is kept for `settle_ms` even if queries show it sooner. */
  const isNeeded = ({ write, at, where: { namespace, lsn } }: OverlayEntry): boolean => {
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
    const ofUser = users.get(entry.user_id);
    ofUser?.delete(id);
    if (ofUser?.size === 0) users.delete(entry.user_id);
  };
  const keep = (id: string, entry: OverlayEntry): void => {
    remove(id);
    entries.set(id, entry);
    bytes += entry.bytes;
    const ofUser = users.get(entry.user_id);
    if (ofUser) ofUser.set(id, entry);
    else users.set(entry.user_id, new Map([[id, entry]]));
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
      const { id, user_id } = write.memory;
      keep(id, { write, user_id, where, at: now(), bytes: sizeOf(write) });
    },
    bury: ({ id, user_id }, where) => keep(id, { write: null, user_id, where, at: now(), bytes: TOMBSTONE_BYTES }),
    of(user_id, position) {
      const live: RecentWrite[] = [];
      const deletedIds = new Set<string>();
      for (const [id, entry] of users.get(user_id) ?? []) {
        const isShown = position !== undefined && entry.where.lsn !== undefined && entry.where.lsn <= position;
        if (isShown || !isNeeded(entry)) continue;
        if (entry.write) live.push(entry.write);
        else deletedIds.add(id);
      }
      // Mostly in the order of creation, which sorts fastest reversed.
      live.reverse().sort((a, b) => newestFirst(a.memory, b.memory));
      return { live, deleted: deletedIds };
    },
    close: () => clearInterval(sweeping),
  };
}

/** The newer of two versions: another gateway may have changed a record after this process wrote it. */
export function newest(writtenMemory: Memory | undefined, storedMemory: Memory | undefined): Memory | undefined {
  if (!writtenMemory || !storedMemory) return writtenMemory ?? storedMemory;
  return writtenMemory.updated_at < storedMemory.updated_at ? storedMemory : writtenMemory;
}

/** Counts text as UTF-16; most of it takes half as much. */
const sizeOf = ({ memory, vector }: RecentWrite): number =>
  ENTRY_BYTES + vector.byteLength + 2 * JSON.stringify(memory).length;

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
