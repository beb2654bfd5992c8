/**
 * Scope glob of list, the reference semantics: `*` any run of characters, `/` included, `?` exactly one code point,
 * everything else literal; without a wildcard an exact match. At most |glob|·|scope| steps, whatever the pattern
 * (a regular expression would backtrack for minutes on `*a*a*a*…`).
 */
export function globMatcher(glob: string): (scope: string) => boolean {
  const pattern = [...glob];
  return (scope) => matches(pattern, [...scope]);
}

function matches(pattern: readonly string[], text: readonly string[]): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      // Let the last star swallow one more character and try again behind it.
      p = star + 1;
      t = ++resume;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** The part of a glob before its first wildcard: every scope it matches starts with this. */
export const literalPrefix = (glob: string): string => /^[^*?]*/.exec(glob)?.[0] ?? '';

export const hasWildcard = (glob: string): boolean => /[*?]/.test(glob);

/** Globs over the scope, any of which must match: unscoped records match none. Null: every record. */
export type Within = readonly string[] | null;

/** Whether a scope is inside. */
export function withinMatcher(within: Within): (scope: string | null) => boolean {
  if (within === null) return () => true;
  const matchers = within.map(globMatcher);
  return (scope) => scope !== null && matchers.some((matches) => matches(scope));
}
