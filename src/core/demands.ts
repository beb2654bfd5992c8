/** What verbs demand of their callers, whatever the store holds (Decision 14). The gate checks it before a verb runs. */
import { type Call, type KeyStore, OmpError } from '#contract';
import { denied } from './access.ts';
import { ACTIONS, ANONYMOUS, type Principal } from './grants.ts';
import { untrustedDenied } from './with-origin.ts';

/** The demands of one verb; `Field` is one of its input fields. */
export interface Demands<Field extends string = string> {
  /** `all`: the grant with the glob `*`; `some`: with any glob. */
  readonly read?: 'all' | 'some';
  readonly write?: 'all';
  readonly delete?: 'all';
  /**
   * `all`: the caller is bound to no users. `{ in }`: it may access the user in this field; if the request names none, as `all`.
   */
  readonly users?: 'all' | { readonly in: Field };
  /** The caller is not untrusted (Decision 54). */
  readonly trusted?: true;
  /** `admin:*`, by a trusted key that is not revoked. `unless open`: also whoever reaches a gateway without keys. */
  readonly admin?: true | 'unless open';
}

const NOT_ADMIN =
  'this needs a key with the grant admin:*; make one with: omp-gateway keys create NAME --grant "admin:*"';
const UNTRUSTED_KEY = 'the key is untrusted, and such a key manages nothing: use a trusted key with the grant admin:*';

/** `Caller.id` of a key. */
export const callerOf = (id: string) => `key:${id}`;

/** Whether the caller holds the grants, and reaches the users, that are demanded. */
export function isAllowed(
  { users, trusted, ...actions }: Omit<Demands, 'admin'>,
  principal: Principal,
  input: Readonly<Record<string, unknown>> = {},
): boolean {
  if (trusted && principal.untrusted) return false;
  const user = typeof users === 'object' ? input[users.in] : undefined;
  const reachesUsers =
    users === undefined || principal.users === null || (user !== undefined && principal.users.includes(user as string));
  return (
    reachesUsers &&
    ACTIONS.every((action) => {
      const granted = principal.grants[action];
      return granted === null || actions[action] === undefined || (actions[action] === 'some' && granted.length > 0);
    })
  );
}

/** Throws `scope_denied` unless the caller meets the demands, and `unauthorized` if its key is revoked. */
export async function meetDemands(
  { admin, ...others }: Demands,
  principal: Principal,
  input: Readonly<Record<string, unknown>>,
  { keys, call }: { readonly keys: KeyStore | undefined; readonly call: Call },
): Promise<void> {
  if (others.trusted && principal.untrusted) throw untrustedDenied();
  if (!isAllowed(others, principal, input)) throw denied();
  if (admin === undefined || (admin === 'unless open' && principal.id === ANONYMOUS.id)) return;
  // Nothing would mark what an untrusted key made.
  if (principal.untrusted) throw new OmpError('scope_denied', UNTRUSTED_KEY);
  if (!principal.grants.admin) throw new OmpError('scope_denied', NOT_ADMIN);
  // A revoked key is accepted for some seconds: too long for one that could make itself a successor.
  const own = await keys?.find(principal.id.slice(callerOf('').length), call);
  if (own && own.revoked_at !== null) throw new OmpError('unauthorized', 'the API key is revoked');
}
