/** `lost`: what was acknowledged is not there; `wrong`: an answer that cannot be right; `hangs`: none at all. */
export class LedgerError extends Error {
  readonly kind: 'lost' | 'wrong' | 'hangs';

  constructor(kind: LedgerError['kind'], message: string, cause?: unknown) {
    super(`${kind}: ${message}`, { cause });
    this.kind = kind;
  }
}

/**
 * What may be found of one memory by a client that asks one thing after the other. A write that was not acknowledged
 * either happens once, sooner or later, or never. What was seen of it counts as if it had been acknowledged then.
 */
export interface Entry {
  /** The latest that was acknowledged or seen. */
  readonly version: number;
  readonly gone: boolean;
  updated(version: number): void;
  deleted(): void;
  /** Without an answer: it may happen at any time. */
  mayBecome(version: number): void;
  mayGo(): void;
  /** Throw a `LedgerError` when that cannot be. */
  found(version: number): void;
  missed(): void;
}

export function createEntry(id: string, first: number): Entry {
  let version = first;
  let gone = false;
  let mayGo = false;
  const open = new Set<number>();
  const exists = () => {
    if (gone) throw new LedgerError('wrong', `${id} is there again after it was deleted`);
  };
  return {
    get version() {
      return version;
    },
    get gone() {
      return gone;
    },
    updated(acknowledged) {
      exists();
      version = acknowledged;
    },
    deleted() {
      exists();
      gone = true;
    },
    mayBecome: (asked) => void open.add(asked),
    mayGo() {
      mayGo = true;
    },
    found(seen) {
      exists();
      if (open.delete(seen)) version = seen;
      else if (seen !== version) throw new LedgerError('wrong', `${id} should be version ${version}, and is ${seen}`);
    },
    missed() {
      if (!gone && !mayGo) throw new LedgerError('lost', id);
      gone = true;
    },
  };
}
