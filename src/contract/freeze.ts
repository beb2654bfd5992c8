import type { Call } from './call.ts';
import { OmpError } from './errors.ts';

/** A store that rejects every change of a memory, so that it can be moved (Decision 53). */
export interface Freeze {
  /** ISO 8601, UTC. */
  readonly since: string;
  /** `Caller.app`, or its id. */
  readonly by: string;
}

/**
 * Freezes a store in the backend, not in a process: every gateway obeys. A frozen store still answers reads, takes audit entries, and computes
 * vectors of what it holds. Its `add`, `batch`, `update`, `delete`, `erase` and `import` throw `storeFrozen`, unless there is nothing to change.
 */
export interface Freezing {
  /** Undefined: the store is not frozen. */
  current(call: Call): Promise<Freeze | undefined>;
  /** Once it resolves, no change is under way, and none happens any more. Of a store that is frozen already, the freeze stays as it is. */
  freeze(request: Pick<Freeze, 'by'>, call: Call): Promise<Freeze>;
  /** Resolves to the freeze that it ended; undefined: there was none. */
  unfreeze(call: Call): Promise<Freeze | undefined>;
}

/** Seconds after which a client may try again. A move freezes a store for about as long. */
const RETRY_SECONDS = 2;

/** Nothing was changed. It says when to come back, so a circuit breaker and the log of failures do not count it. */
export const storeFrozen = (provider: string, since?: string): OmpError =>
  new OmpError(
    'provider_error',
    `the store takes no changes${since === undefined ? '' : ` since ${since}`}, because it is being moved; reads go on; retry in ${RETRY_SECONDS} s`,
    { provider, retryAfter: RETRY_SECONDS, frozen: true },
  );
