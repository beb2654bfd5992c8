import {
  type AuditAction,
  type AuditEntry,
  type AuditLog,
  backgroundCall,
  type Call,
  changeEntry,
  type Log,
  type Memory,
  unchangedEntry,
} from '#contract';
import { createKeyedMutex } from '#toolbox';
import { callOf, type Part } from './parts.ts';

/*
 * The entries of changes in mounted stores, in the audit log of the root store (Decision 49). They are written after the change, since
 * the two stores have no transaction together.
 */

export type Changed = Parameters<typeof changeEntry>[1];

/** Milliseconds until entries that the root store did not take are written again, and how many are kept for that. */
const AGAIN_MS = 1_000;
const MAX_LATE = 10_000;

/** How long a change may take after its client has left, in milliseconds. */
export const LONGEST_CHANGE_MS = 60_000;

/**
 * Writes the entries of changes that are made already. Rejects if the root store does not take them, and then writes them again
 * until it does, so that no follower misses the change.
 */
function recorderOf(audit: AuditLog, log: Log) {
  let late: readonly AuditEntry[] = [];
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  const keep = (entries: readonly AuditEntry[]) => {
    const lost = late.length + entries.length - MAX_LATE;
    if (lost > 0)
      log.error({ lost }, 'changes of mounted stores are missing in the feed: the root store does not accept them');
    late = [...late, ...entries].slice(0, MAX_LATE);
    if (!closed) timer ??= setTimeout(() => void writeLate(), AGAIN_MS);
  };
  const writeLate = async () => {
    clearTimeout(timer);
    timer = undefined;
    const entries = late;
    late = [];
    if (entries.length === 0) return;
    await audit.record(entries, backgroundCall('audit')).catch((err: unknown) => {
      log.warn(
        { err, queue_length: entries.length },
        'entries of changes in mounted stores could not be written; they will be retried',
      );
      keep(entries);
    });
  };
  return {
    async record(entries: readonly AuditEntry[], call: Call): Promise<void> {
      try {
        await audit.record(entries, call);
      } catch (error) {
        keep(entries);
        throw error;
      }
    },
    /** Tries once more. What the root store does not accept then is lost, and the log says how much. */
    async close(): Promise<void> {
      closed = true;
      await writeLate();
      if (late.length > 0)
        log.error(
          { lost: late.length },
          'changes of mounted stores are missing in the feed: the root store did not accept them before shutdown',
        );
    },
  };
}

export type Entries = ReturnType<typeof createEntries>;

/** `audit`: the log of the root store; undefined: there are no entries. */
export function createEntries(audit: AuditLog | undefined, log: Log) {
  const recorder = audit && recorderOf(audit, log);
  /** The root store writes its entries itself, and without its log there are none. */
  const needsEntry = ({ mount }: Part) => mount !== undefined && recorder !== undefined;
  const mutex = createKeyedMutex();
  /** Changes of these memories follow one another in this gateway, so that each entry says what the memory was before it. */
  const inTurn = <Result>(ids: readonly string[], work: () => Promise<Result>): Promise<Result> =>
    // Always in one order, so that no two of them wait for each other.
    [...new Set(ids)].sort().reduce((inner, id) => () => mutex(id, inner), work)();
  /**
   * Runs a change of a mounted store to its end, with its entry, even if the client leaves meanwhile: the store may have made it.
   * `ids`: the memories that it may change.
   */
  const toItsEnd = <Result>(
    part: Part,
    call: Call,
    work: (own: Call) => Promise<Result>,
    ids: readonly string[] = [],
  ): Promise<Result> => {
    if (!needsEntry(part)) return work(callOf(part, call));
    const run = async () => {
      call.throwIfAborted();
      return work(callOf(part, call.with({ abortedBy: AbortSignal.timeout(LONGEST_CHANGE_MS) })));
    };
    return call.unlessAborted(inTurn(ids, run));
  };
  const write = async (part: Part, entries: readonly AuditEntry[], call: Call) => {
    if (needsEntry(part) && entries.length > 0) await recorder?.record(entries, call);
  };
  const record = (part: Part, action: AuditAction, changed: readonly Changed[], call: Call) =>
    write(
      part,
      changed.map((one) => changeEntry(action, one, call)),
      call,
    );
  /** What the audit log has, and the feed of changes has not. */
  const recordUnchanged = (part: Part, action: AuditAction, memories: readonly Memory[], call: Call) =>
    write(
      part,
      memories.map((one) => unchangedEntry(action, one, call)),
      call,
    );
  return { needsEntry, toItsEnd, record, recordUnchanged, close: async () => recorder?.close() };
}
