import {
  type AuditAction,
  type AuditEntry,
  type AuditLog,
  backgroundCall,
  Call,
  changeEntry,
  type Memory,
  unchangedEntry,
} from '#contract';
import { createKeyedMutex } from '#toolbox';
import { callOf, type Part } from './mount-parts.ts';

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
function recorderOf(audit: AuditLog) {
  let late: AuditEntry[] = [];
  let timer: NodeJS.Timeout | undefined;
  const writeLate = async () => {
    clearTimeout(timer);
    timer = undefined;
    const entries = late;
    late = [];
    if (entries.length === 0) return;
    await audit.record(entries, backgroundCall('audit')).catch(() => {
      late = [...entries, ...late];
      timer = setTimeout(writeLate, AGAIN_MS);
    });
  };
  return {
    async record(entries: readonly AuditEntry[], call: Call): Promise<void> {
      try {
        await audit.record(entries, call);
      } catch (error) {
        late.push(...entries.slice(0, MAX_LATE - late.length));
        timer ??= setTimeout(writeLate, AGAIN_MS);
        throw error;
      }
    },
    /** Tries once more. */
    async close(): Promise<void> {
      await writeLate();
      clearTimeout(timer);
    },
  };
}

/** `audit`: the log of the root store; undefined: there are no entries. */
export function createEntries(audit: AuditLog | undefined) {
  const recorder = audit && recorderOf(audit);
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
      const own = new Call(call.requestId, call.caller, AbortSignal.timeout(LONGEST_CHANGE_MS));
      own.trace = call.trace;
      own.consistency = call.consistency;
      return work(callOf(part, own));
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
