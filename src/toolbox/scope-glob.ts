import type { Within } from '#contract';

/**
 * Scope glob of list, the reference semantics: `*` any run of characters, `/` included, `?` exactly one code point,
 * everything else literal; without a wildcard an exact match. Each run of literals is looked for with `indexOf`, and none
 * twice: a regular expression would backtrack for minutes on `*a*a*a*…`.
 */
export function globMatcher(glob: string): (scope: string) => boolean {
  // Between stars; the texts of a part are what stands between its question marks.
  const [first = [], ...others] = glob.split('*').map((part) => part.split('?'));
  const last = others.pop();
  return (scope) => {
    let place = endOf(first, scope, 0);
    if (!last) return place === scope.length;
    for (const part of others) if (place >= 0) place = find(part, scope, place);
    const start = place < 0 ? -1 : startOfEnd(last, scope);
    return start >= place && start >= 0 && endOf(last, scope, start) === scope.length;
  };
}

const widthAt = (text: string, place: number): number => ((text.codePointAt(place) as number) > 0xffff ? 2 : 1);

/** Where the part ends that begins here; -1: it does not. */
function endOf(part: readonly string[], text: string, start: number): number {
  let place = start;
  for (const [i, literal] of part.entries()) {
    if (i > 0 && place >= text.length) return -1;
    if (i > 0) place += widthAt(text, place);
    if (!text.startsWith(literal, place)) return -1;
    place += literal.length;
  }
  return place;
}

/** Where the part ends that begins as early as it can from here on; -1: nowhere. */
function find(part: readonly string[], text: string, from: number): number {
  const [literal = ''] = part;
  for (
    let start = text.indexOf(literal, from);
    start >= 0;
    start = text.indexOf(literal, start + widthAt(text, start))
  ) {
    const end = endOf(part, text, start);
    if (end >= 0 || start >= text.length) return end;
  }
  return -1;
}

/** Where the part begins if it ends with the text; -1: the text is too short. */
function startOfEnd(part: readonly string[], text: string): number {
  let start = text.length;
  for (const [i, literal] of [...part].reverse().entries()) {
    if (i > 0) {
      const isPair = start > 1 && (text.codePointAt(start - 2) as number) > 0xffff;
      start -= isPair ? 2 : 1;
    }
    start -= literal.length;
  }
  return start;
}

/** The part of a glob before its first wildcard: every scope it matches starts with this. */
export const literalPrefix = (glob: string): string => /^[^*?]*/.exec(glob)?.[0] ?? '';

export const hasWildcard = (glob: string): boolean => /[*?]/.test(glob);

/** Whether a scope is inside. */
export function withinMatcher(within: Within): (scope: string | null) => boolean {
  if (within === null) return () => true;
  const matchers = within.map(globMatcher);
  return (scope) => scope !== null && matchers.some((matches) => matches(scope));
}
