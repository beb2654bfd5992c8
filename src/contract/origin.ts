import type { Memory } from './record.ts';

/*
 * Who wrote a memory, and whether to trust its text (Decision 54): `x-` keys that the gateway sets. They are part of `extensions`, so that every
 * backend keeps them like any other.
 */

/** The key of the last change, an `Origin`. Absent: the memory is older than origins, or of another application. */
export const ORIGIN = 'x-omp-origin';
/** True: a caller with an untrusted key wrote the text. Else absent. */
export const UNTRUSTED = 'x-omp-untrusted';

/** Whether an `x-` key belongs to the gateway. No client sets one, in any case of its letters. */
export const isReserved = (key: string): boolean => /^x-omp-/i.test(key);

/** The ways to change a memory. */
export const WAYS = ['http', 'mcp', 'mem0', 'import', 'restore', 'rollback'] as const;
export type Way = (typeof WAYS)[number];

/** The last change of a memory; its time is `updated_at`. */
export interface Origin {
  /** Name of the API key, or subject of the token (`Caller.app`). Absent: anonymous. */
  readonly key?: string;
  readonly via: Way;
  /** The version that a restore or a rollback has brought back. */
  readonly version?: number;
  /** Time of an import, whose `updated_at` comes from a file. Other changes have none. */
  readonly at?: string;
  /** An import that replaced a memory, or may have. */
  readonly replaced?: true;
  /** The first origin that a file of an import states. The importer vouches for it, not the gateway. */
  readonly from?: Omit<Origin, 'from' | 'replaced'>;
}

/** Which memories a query wants, by who wrote them. Given only if `capabilities.origins`. */
export interface Written {
  /** By the last change: of this key, by this way, or `unknown`: without `ORIGIN`. */
  readonly origin?: { readonly key: string } | { readonly via: Way | 'unknown' };
  /** Only memories without `UNTRUSTED`. */
  readonly trusted?: true;
}

/** The origin of a memory; undefined: unknown. */
export function originOf({ extensions: { [ORIGIN]: origin } }: Pick<Memory, 'extensions'>): Origin | undefined {
  const { via } = (origin ?? {}) as Partial<Origin>;
  return via !== undefined && WAYS.includes(via) ? (origin as Origin) : undefined;
}

export const isUntrusted = ({ extensions }: Pick<Memory, 'extensions'>): boolean => extensions[UNTRUSTED] === true;
