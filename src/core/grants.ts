import { invalidRequest, type Within } from '#contract';

/** What a grant may allow: `read` is get, list, search, context and audit; `write` is add and update. */
const ACTIONS = ['read', 'write', 'delete'] as const;
export type Action = (typeof ACTIONS)[number];

/** For each action the scopes it is allowed in: null everywhere, an empty list nowhere. */
export type Grants = Readonly<Record<Action, Within>>;

export const ALL_GRANTS: Grants = { read: null, write: null, delete: null };

const MAX_GLOB = 512;
const FORM = /^(read|write|delete|\*):(.+)$/su;

/** Whether a text has the form of a grant: `<action>:<scope glob>`, the glob 1 to 512 characters without NUL. */
export const isGrant = (text: string): boolean => {
  const glob = FORM.exec(text)?.[2];
  return glob !== undefined && [...glob].length <= MAX_GLOB && glob.isWellFormed() && !glob.includes('\0');
};

/**
 * What a list of grants allows together. The glob `*` covers unscoped memories too, narrower ones do not (Decision
 * 14). Throws `invalid_request` for a text that is no grant.
 */
export function toGrants(texts: readonly string[]): Grants {
  const allowed: Record<Action, string[] | null> = { read: [], write: [], delete: [] };
  for (const text of texts) {
    if (!isGrant(text)) throw invalidRequest(`"${text}" is no grant: read, write, delete or *, a colon, a scope glob`);
    const [, action, glob = ''] = FORM.exec(text) as RegExpExecArray;
    for (const each of ACTIONS) {
      if (action !== '*' && action !== each) continue;
      if (glob === '*') allowed[each] = null;
      else allowed[each]?.push(glob);
    }
  }
  return allowed;
}
