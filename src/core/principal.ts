import type { Call, Caller } from '#contract';
import { ALL_GRANTS, type Grants } from './grants.ts';

/** A caller and what it may do. */
export interface Principal extends Caller {
  /** The only users it may touch; null: all. */
  readonly users: readonly string[] | null;
  readonly grants: Grants;
}

/** Everybody, where no keys are configured. */
export const ANYBODY: Principal = { id: 'anybody', app: null, users: null, grants: ALL_GRANTS };

/** Finds out who calls. */
export interface Authenticator {
  /**
   * The owner of a credential: what follows `Bearer` or stands in `X-API-Key`; undefined when the request has none.
   * The same principal object is returned as long as it is cached. Throws `unauthorized` unless the credential is good
   * or none is needed, `provider_error` when that cannot be found out.
   */
  authenticate(credential: string | undefined, call: Call): Promise<Principal>;
}

/** Where no keys are configured. */
export const OPEN: Authenticator = { authenticate: async () => ANYBODY };
