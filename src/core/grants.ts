/** A caller and its grants: what they are and how they are parsed. `access.ts` decides by them which memories it may see and change. */
import { type Call, type Caller, invalidRequest, MAX_SCOPE_LENGTH, type Within } from '#contract';

/**
 * Actions of a grant: `read` is get, list, search, context, audit, changes, users and stats, and export in all scopes;
 * `write` is add and update, and import in all scopes; `delete` also erases.
 */
export const ACTIONS = ['read', 'write', 'delete'] as const;
export type Action = (typeof ACTIONS)[number];

/** The grant to list, create and revoke keys (Decision 41). No other grant includes it, and it includes no other. */
export const ADMIN_GRANT = 'admin:*';

/** The allowed scopes of each action; null: all. */
export interface Grants extends Readonly<Record<Action, Within>> {
  /** `ADMIN_GRANT`. */
  readonly admin: boolean;
}

/** Everything that can be done with memories. */
export const ALL_GRANTS: Grants = { read: null, write: null, delete: null, admin: false };

const FORM = /^(read|write|delete|\*):(.+)$/su;

/** Whether a text is a valid grant on memories: `<action>:<scope glob>`, the glob 1 to 512 characters without NUL. */
export const isGrant = (text: string): boolean => {
  const glob = FORM.exec(text)?.[2];
  return glob !== undefined && [...glob].length <= MAX_SCOPE_LENGTH && glob.isWellFormed() && !glob.includes('\0');
};

/** Whether a text is a valid grant of a key. Tokens have no `ADMIN_GRANT`. */
export const isKeyGrant = (text: string): boolean => text === ADMIN_GRANT || isGrant(text);

/**
 * The union of a list of grants. The glob `*` also covers unscoped memories; other globs do not (Decision 14). Throws
 * `invalid_request` for an invalid grant.
 */
export function toGrants(texts: readonly string[]): Grants {
  const scopes: Record<Action, string[] | null> = { read: [], write: [], delete: [] };
  for (const text of texts) {
    if (text === ADMIN_GRANT) continue;
    if (!isGrant(text))
      throw invalidRequest(`"${text}" is not a grant: expected read, write, delete or *, a colon, and a scope glob`);
    const [, action, glob = ''] = FORM.exec(text) as RegExpExecArray;
    for (const each of ACTIONS) {
      if (action !== '*' && action !== each) continue;
      if (glob === '*') scopes[each] = null;
      else scopes[each]?.push(glob);
    }
  }
  return { ...scopes, admin: texts.includes(ADMIN_GRANT) };
}

/** A caller with its permissions. */
export interface Principal extends Caller {
  /** Users that the caller may access; null: all. */
  readonly users: readonly string[] | null;
  readonly grants: Grants;
  /** Whether what it writes is marked as untrusted (Decision 54). Absent: no. */
  readonly untrusted?: boolean;
}

/** Every caller of a gateway without keys. */
export const ANONYMOUS: Principal = { id: 'anybody', app: null, users: null, grants: ALL_GRANTS };

/** Identifies the caller of a request. */
export interface Authenticator {
  /**
   * The principal of a credential: the value after `Bearer` or of `X-API-Key`; undefined if the request has none. Returns
   * the same object while it is cached. Throws `unauthorized` if the credential is invalid, or missing but required, and
   * `provider_error` if the credential cannot be checked.
   */
  authenticate(credential: string | undefined, call: Call): Promise<Principal>;
}

/** The authenticator of a gateway without keys. */
export const OPEN: Authenticator = { authenticate: async () => ANONYMOUS };
