import { type Memory, type Origin, originOf } from '#contract';

/*
 * What a rollback does with a memory, decided by its versions alone (Decision 56).
 */

/** What is undone: all that was written in this time, by this caller. */
export interface Undone {
  /** Both inclusive. */
  readonly since: string;
  readonly until?: string | undefined;
  /** The time of the request. */
  readonly now: string;
  /** Name of the key; empty: callers without one. Undefined: every caller. */
  readonly key?: string | undefined;
}

/** What is known of a version, without what it holds. */
export interface Write {
  readonly version: number;
  /** When it was written. */
  readonly at: string;
  readonly origin: Origin | undefined;
  /** Whether all that the memory was then came with this write. */
  readonly writesAll: boolean;
}

/** `no_version`: what was there before is not known. `changed_since`: somebody else wrote on top of it. `rolled_back`: another rollback has undone it. */
type KeepReason = 'changed_since' | 'no_version' | 'rolled_back';

export type Plan =
  | { readonly action: 'delete' }
  | { readonly action: 'restore'; readonly version: number }
  | { readonly action: 'keep'; readonly reason: KeepReason };

const keep = (reason: KeepReason): Plan => ({ action: 'keep', reason });

export function writeOf(version: number, memory: Memory): Write {
  const { created_at, updated_at } = memory;
  const origin = originOf(memory);
  // An import writes all of a memory, with times and a number of its own. Others may have changed it before versions were kept.
  const writesAll = origin?.via === 'import' || (version === 1 && updated_at === created_at);
  return { version, at: origin?.at ?? updated_at, origin, writesAll };
}

/** Whether a write is among those to undo. What a rollback has written is not. */
export const isUndone = (write: Write, undone: Undone): boolean =>
  write.origin?.via !== 'rollback' && isMeant(write, undone);

/**
 * Whether a write is of this time and caller. A time that is yet to come follows one that an import took from its file. When the write
 * really happened is not known then, so it counts if it is after `since`.
 */
function isMeant({ at, origin }: Write, { since, now, until = now, key }: Undone): boolean {
  if (at < since || (at > until && at <= now)) return false;
  return key === undefined || (origin !== undefined && (origin.key ?? '') === key);
}

/**
 * What becomes of a memory with these versions, newest first, the current one included. Undefined: nothing is undone. A rollback has
 * made the memory what it was in the version that it restored, so the writes between the two count no more.
 */
export function planOf(writes: readonly Write[], undone: Undone): Plan | undefined {
  if (!writes.some((write) => isUndone(write, undone))) {
    // A rollback by the caller in question is nothing that another one undoes, but somebody must know of it.
    return undone.key !== undefined && writes.some((write) => isMeant(write, undone)) ? keep('rolled_back') : undefined;
  }
  const lasting = lastingWrites(writes);
  const [current] = lasting;
  if (!lasting.some((write) => isUndone(write, undone))) return keep('rolled_back');
  if (!current || !isUndone(current, undone)) return keep('changed_since');
  const before = lasting.findIndex((write) => !isUndone(write, undone));
  if (before < 0) {
    const first = lasting.at(-1);
    return first?.writesAll && !first.origin?.replaced ? { action: 'delete' } : keep('no_version');
  }
  // What the version before is made of: it may build on a write that is to be undone.
  const parts = lasting.slice(
    before,
    lasting.findIndex(({ writesAll }, at) => writesAll && at >= before) + 1 || undefined,
  );
  if (parts.some((write) => isUndone(write, undone))) return keep('changed_since');
  const [restored, first] = [parts[0] as Write, parts.at(-1) as Write];
  if (!first.writesAll && first.at >= undone.since) return keep('no_version');
  return { action: 'restore', version: restored.version };
}

/** The writes that made the memory what it is, newest first, as far back as they are known without a gap. */
function lastingWrites(writes: readonly Write[]): Write[] {
  const byVersion = new Map(writes.map((write) => [write.version, write]));
  const lasting: Write[] = [];
  for (let write = writes[0]; write; ) {
    const restored = write.origin?.via === 'rollback' ? write.origin.version : undefined;
    if (restored === undefined) lasting.push(write);
    // Only downwards: in a mapped table an origin may say anything.
    const next: number = restored !== undefined && restored < write.version ? restored : write.version - 1;
    write = byVersion.get(next);
  }
  return lasting;
}
