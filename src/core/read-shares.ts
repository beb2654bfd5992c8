/** How much one caller may read at once: the memory that its answers take, and the time of the event loop to make them. */
import { type Call, type Memory, OmpError } from '#contract';
import { createKeyedMutex, sizeWithin } from '#toolbox';

/** The result of a read, with the number of its records and their size (`recordBytes`). */
export interface SizedResult<Result> {
  readonly result: Result;
  readonly count: number;
  readonly bytes: number;
}

/**
 * Gives every caller the same share of the memory for answers, and of the event loop's time to make them. A read reserves
 * the bytes that it may take; beyond the share of its caller it waits, in the order of arrival. The share gets the bytes
 * back once the client has taken the answer (`Call.afterAnswer`). Only the first read of a request waits; the others count. Throws `rate_limited` if it has waited too long, or the request ends.
 */
export interface ReadShares {
  /**
   * A read of at most `limit` records, each of `recordBytes`; the default is what the caller's records took lately. A read of
   * little never waits. Large results of all callers are returned one after another, with turns of the event loop
   * between them for other requests.
   */
  records<Result>(
    limit: number,
    call: Call,
    work: () => Promise<SizedResult<Result>>,
    recordBytes?: number,
  ): Promise<Result>;
  /** A read that takes the whole share of its caller, so one runs at a time. The result gives half of the share back. */
  alone<Result>(call: Call, work: () => Promise<Result>): Promise<Result>;
  /**
   * A read of little for a file, which reads on and on. Those of one caller run one at a time for each store (its name), each after a turn of
   * the event loop, and apart from those of its followers (`shared`): these have a deadline, which a slow file would use up.
   */
  part<Result>(store: string, call: Call, work: () => Promise<Result>): Promise<Result>;
  /**
   * As `part`. Equal reads of one caller that wait for their turn are one, and what each makes of it has a turn of its own. One that has
   * begun is not shared: it may not see what the next was woken for. `what`: what is equal.
   */
  shared<Result>(store: string, what: string, call: Call, work: () => Promise<Result>): Promise<Result>;
  /** Waits for its place among the large results: for what many do at one moment. */
  turn(): Promise<void>;
}

/** Maximum bytes of the records in one response (`recordBytes`); a single record may be larger. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** The share of one caller: two of the largest answers. */
export const SHARE_BYTES = 2 * MAX_ANSWER_BYTES;
/** A read that takes less is not counted. */
export const SMALL_BYTES = 128 * 1024;
/** Expected size of a record of an unknown caller: 500 of them fill the largest answer. */
const FIRST_RECORD_BYTES = 8 * 1024;
/** Otherwise a caller could start hundreds of large reads at once after some small ones. */
const MIN_RECORD_BYTES = 1024;
/** The expected size rises at once, and falls by this part of the difference with each answer. */
const FALL = 1 / 8;
/**
 * A large result lets the event loop turn once for each so many bytes. A turn without work takes microseconds; a small
 * request takes a few turns, and so does a connection, of which each turn accepts one.
 */
const BYTES_PER_TURN = 128 * 1024;
/** A read that waited longer gets 429 when its turn comes, so that one that begins has most of its deadline left. */
const MAX_WAIT_MS = 10_000;
/** Above this, the oldest caller without a read is evicted. */
const MAX_CALLERS = 10_000;

/** The share of one caller. */
interface CallerShare {
  usedBytes: number;
  /** Expected size of a record, in bytes. */
  recordBytes: number;
  readonly queue: QueuedRead[];
}

interface QueuedRead {
  readonly bytes: number;
  readonly call: Call;
  readonly since: number;
  readonly start: () => void;
  readonly reject: (error: OmpError) => void;
}

/** `stores`: how many are read for one answer; each may send as much as the answer may hold. */
export function createReadShares(stores = 1): ReadShares {
  const shares = new Map<string, CallerShare>();
  /** What a request has reserved, in bytes. */
  const reservations = new WeakMap<Call, number>();
  let ahead = Promise.resolve();
  const oneByOne = createKeyedMutex();
  const waiting = new Map<string, { readonly call: Call; readonly result: Promise<unknown> }>();

  const shareOf = ({ caller: { id } }: Call): CallerShare => {
    const existing = shares.get(id);
    if (existing) return existing;
    if (shares.size >= MAX_CALLERS) {
      for (const [other, { usedBytes }] of shares) {
        if (usedBytes > 0) continue;
        shares.delete(other);
        break;
      }
    }
    const share = { usedBytes: 0, recordBytes: FIRST_RECORD_BYTES, queue: [] };
    shares.set(id, share);
    return share;
  };
  const fits = ({ usedBytes }: CallerShare, bytes: number) => usedBytes === 0 || usedBytes + bytes <= SHARE_BYTES;
  const startNext = (share: CallerShare) => {
    const { queue } = share;
    for (let [first] = queue; first && (first.call.aborted || fits(share, first.bytes)); [first] = queue) {
      queue.shift();
      if (first.call.aborted || performance.now() - first.since > MAX_WAIT_MS) first.reject(waitedTooLong());
      else {
        reserve(share, first.bytes, first.call);
        first.start();
      }
    }
  };
  /** A negative number gives bytes back. */
  const reserve = (share: CallerShare, bytes: number, call: Call) => {
    const before = reservations.get(call);
    share.usedBytes += bytes;
    reservations.set(call, (before ?? 0) + bytes);
    if (bytes < 0) startNext(share);
    if (before === undefined) {
      call.afterAnswer(() => {
        share.usedBytes -= reservations.get(call) ?? 0;
        reservations.delete(call);
        startNext(share);
      });
    }
  };
  const admit = async (share: CallerShare, bytes: number, call: Call) => {
    if (reservations.has(call) || (share.queue.length === 0 && fits(share, bytes))) return reserve(share, bytes, call);
    const admission = new Promise<void>((start, reject) =>
      share.queue.push({ bytes, call, since: performance.now(), start, reject }),
    );
    try {
      await call.unlessAborted(admission);
    } catch {
      throw waitedTooLong();
    }
  };
  const afterOthers = (bytes: number): Promise<void> => {
    ahead = ahead.then(async () => {
      for (let turn = 0; turn < bytes / BYTES_PER_TURN; turn++) await new Promise((resolve) => setImmediate(resolve));
    });
    return ahead;
  };
  const inTurn = <Result>(store: string, call: Call, work: () => Promise<Result>, onTurn = () => {}) =>
    oneByOne(JSON.stringify([call.caller.id, store]), async () => {
      await afterOthers(BYTES_PER_TURN);
      onTurn();
      call.throwIfAborted();
      return work();
    });

  return {
    async records(limit, call, work, recordBytes) {
      const share = shareOf(call);
      const estimate = stores * countedBytes(Math.min(limit * (recordBytes ?? share.recordBytes), MAX_ANSWER_BYTES));
      if (estimate > 0) await admit(share, estimate, call);
      const { result, count, bytes } = await work();
      if (count > 0) learn(share, bytes / count);
      const actual = countedBytes(bytes);
      if (actual !== estimate) reserve(share, actual - estimate, call);
      if (actual > BYTES_PER_TURN) await afterOthers(actual);
      return result;
    },
    async alone(call, work) {
      const share = shareOf(call);
      await admit(share, SHARE_BYTES, call);
      const result = await work();
      await afterOthers(MAX_ANSWER_BYTES);
      reserve(share, MAX_ANSWER_BYTES - SHARE_BYTES, call);
      return result;
    },
    part: (store, call, work) => inTurn(`file of ${store}`, call, work),
    async shared<Result>(store: string, what: string, call: Call, work: () => Promise<Result>) {
      const key = JSON.stringify([call.caller.id, store, what]);
      for (;;) {
        const one = waiting.get(key) ?? { call, result: inTurn(store, call, work, () => waiting.delete(key)) };
        waiting.set(key, one);
        try {
          const result = (await call.unlessAborted(one.result)) as Result;
          if (one.call !== call) await afterOthers(BYTES_PER_TURN);
          return result;
        } catch (error) {
          // The request whose read it was may have ended, and this one has not.
          if (one.call === call || !one.call.aborted || call.aborted) throw error;
        }
      }
    },
    turn: () => afterOthers(BYTES_PER_TURN),
  };
}

const waitedTooLong = (): OmpError =>
  new OmpError('rate_limited', 'other large reads of this caller are still running; retry in 1 s', { retryAfter: 1 });

const countedBytes = (bytes: number): number => (bytes > SMALL_BYTES ? bytes : 0);

function learn(share: CallerShare, recordBytes: number): void {
  const fallen = share.recordBytes - (share.recordBytes - recordBytes) * FALL;
  share.recordBytes = Math.ceil(Math.max(MIN_RECORD_BYTES, recordBytes, fallen));
}

/** The first items of a result. */
export interface Page<Item> {
  readonly items: Item[];
  /** Whether the result continues, after the limit of the query or the byte limit of a response. */
  readonly more: boolean;
}

/** The first items, at most `limit`, whose memories fit into one response. */
export function pageOf<Item>(
  all: readonly Item[],
  memories: readonly Memory[],
  limit = all.length,
): SizedResult<Page<Item>> {
  const { count, bytes } = sizeWithin(memories, MAX_ANSWER_BYTES);
  const items = all.slice(0, Math.min(limit, count));
  return { result: { items, more: all.length > items.length }, count, bytes };
}
