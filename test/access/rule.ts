/**
 * The rule of who may do what, in the plainest words: Decisions 13, 14 and 19, and SPEC, Authentication.
 * Written from that text and sharing nothing with the code it judges. Slow and simple on purpose.
 */

export type Action = 'read' | 'write' | 'delete';

/** What a key was given. */
export interface Key {
  /** `<action>:<scope glob>`. */
  readonly grants: readonly string[];
  /** The only users it may touch; null: all. */
  readonly users: readonly string[] | null;
}

export interface Owned {
  readonly user_id: string;
  readonly scope?: string | null;
}

export type Refusal = 'scope_denied' | 'not_found';

/** `*` is any run of characters, `/` included; `?` one character; the rest literal. */
function matches(glob: readonly string[], text: readonly string[]): boolean {
  const [wanted, ...rest] = glob;
  const [given, ...after] = text;
  if (wanted === undefined) return given === undefined;
  if (wanted === '*') return matches(rest, text) || (given !== undefined && matches(glob, after));
  return given !== undefined && (wanted === '?' || wanted === given) && matches(rest, after);
}

export const globMatches = (glob: string, text: string): boolean => matches([...glob], [...text]);

/** Whether there is a text that both globs match. */
function meet(a: readonly string[], b: readonly string[]): boolean {
  const [left, ...restA] = a;
  const [right, ...restB] = b;
  if (left === undefined && right === undefined) return true;
  if (left === '*') return meet(restA, b) || (right !== undefined && meet(a, restB));
  if (right === '*') return meet(a, restB) || (left !== undefined && meet(restA, b));
  if (left === undefined || right === undefined) return false;
  return (left === '?' || right === '?' || left === right) && meet(restA, restB);
}

export const globsMeet = (a: string, b: string): boolean => meet([...a], [...b]);

/** A key bound to users touches only those. */
export const reaches = (key: Key, user: string): boolean => key.users?.includes(user) ?? true;

/** The globs that a key was given for an action. */
export const globsOf = (key: Key, action: Action): string[] =>
  key.grants.flatMap((grant) => {
    const [granted = '', ...glob] = grant.split(':');
    return granted === action || granted === '*' ? [glob.join(':')] : [];
  });

/** `*` covers unscoped memories, narrower globs do not. */
export const covers = (key: Key, action: Action, scope: string | null): boolean =>
  globsOf(key, action).some((glob) => glob === '*' || (scope !== null && globMatches(glob, scope)));

/** What a key sees of everything there is. */
export const sees = (key: Key, { user_id, scope = null }: Owned): boolean =>
  reaches(key, user_id) && covers(key, 'read', scope);

/**
 * By id. An unknown id and a record of a user out of reach are 404, and so is one whose owner is not the user the
 * client names; a record of a user in reach outside the grant is 403. A record may be moved only to where the key
 * could have made it.
 */
export function refusalById(
  key: Key,
  action: Action,
  record: Owned | undefined,
  asked: { readonly user?: string | undefined; readonly moveTo?: string | undefined } = {},
): Refusal | undefined {
  if (!record || !reaches(key, record.user_id)) return 'not_found';
  if (asked.user !== undefined && asked.user !== record.user_id) return 'not_found';
  if (!covers(key, action, record.scope ?? null)) return 'scope_denied';
  return asked.moveTo === undefined || covers(key, action, asked.moveTo) ? undefined : 'scope_denied';
}

/** A memory that the key may not read is not moved to where it may read it. */
export function refusalOfUpdate(
  key: Key,
  record: Owned | undefined,
  asked: { readonly moveTo?: string | undefined } = {},
): Refusal | undefined {
  const refusal = refusalById(key, 'write', record, asked);
  const reveals = record && asked.moveTo !== undefined && !sees(key, record) && covers(key, 'read', asked.moveTo);
  return refusal ?? (reveals ? 'scope_denied' : undefined);
}

export const refusalOfAdd = (key: Key, { user_id, scope = null }: Owned): Refusal | undefined =>
  reaches(key, user_id) && covers(key, 'write', scope) ? undefined : 'scope_denied';

/** List, search, context, stats and audit: refused only where nothing that is granted could be an answer. */
export const refusalOfQuery = (key: Key, user: string, glob = '*'): Refusal | undefined =>
  reaches(key, user) && globsOf(key, 'read').some((granted) => globsMeet(granted, glob)) ? undefined : 'scope_denied';
