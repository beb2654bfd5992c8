import type { Visible, Within } from '#contract';

/**
 * Reference semantics of a scope glob: `*` matches any run of characters including `/`, `?` exactly one code point, and all
 * other characters themselves. Finds each literal part once, with `indexOf`: a regular expression would backtrack for
 * minutes on `*a*a*a*…`.
 */
export function globMatcher(glob: string): (scope: string) => boolean {
  // The parts between the stars, each split at its question marks.
  const [first = [], ...others] = glob.split('*').map((part) => part.split('?'));
  const last = others.pop();
  return (scope) => {
    let position = endOf(first, scope, 0);
    if (!last) return position === scope.length;
    for (const part of others) if (position >= 0) position = find(part, scope, position);
    const start = position < 0 ? -1 : startOfSuffix(last, scope);
    return start >= position && start >= 0 && endOf(last, scope, start) === scope.length;
  };
}

const widthAt = (text: string, position: number): number => ((text.codePointAt(position) as number) > 0xffff ? 2 : 1);

/** The end of a match of `part` at `start`; -1: no match. */
function endOf(part: readonly string[], text: string, start: number): number {
  let position = start;
  for (const [i, literal] of part.entries()) {
    if (i > 0 && position >= text.length) return -1;
    if (i > 0) position += widthAt(text, position);
    if (!text.startsWith(literal, position)) return -1;
    position += literal.length;
  }
  return position;
}

/** The end of the first match of `part` at or after `from`; -1: no match. */
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

/** The start of a match of `part` that ends with the text; negative: the text is too short. */
function startOfSuffix(part: readonly string[], text: string): number {
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

/** The part of a glob before its first wildcard: all matching scopes start with it. */
export const literalPrefix = (glob: string): string => /^[^*?]*/.exec(glob)?.[0] ?? '';

export const hasWildcard = (glob: string): boolean => /[*?]/.test(glob);

/** A function that tells whether a scope is one of the allowed scopes. */
export function withinMatcher(within: Within): (scope: string | null) => boolean {
  if (within === null) return () => true;
  const matchers = within.filter((glob) => glob !== '').map(globMatcher);
  const unscoped = matchers.length < within.length;
  return (scope) => (scope === null ? unscoped : matchers.some((matches) => matches(scope)));
}

/** A function that tells whether a query may see a scope. */
export function visibleMatcher({ within, outside = [] }: Visible): (scope: string | null) => boolean {
  const admits = withinMatcher(within);
  if (outside.length === 0) return admits;
  return (scope) => admits(scope) && !outside.some((hidden) => isAtOrBelow(scope, hidden));
}

/** Whether a scope is this one or lies below it. */
export const isAtOrBelow = (scope: string | null, top: string): boolean =>
  scope === top || (scope?.startsWith(`${top}/`) ?? false);

/**
 * What is left of a glob below a scope: globs over the rest of the scope, one of which matches exactly where the glob matches the
 * whole. The empty one stands for the scope itself. Several, because a star may also match a part of the scope:
 * `*k/x` below `k` leaves `*k/x` and `x`.
 */
export function globsBelow(glob: string, scope: string): string[] {
  const pattern = [...glob];
  /** Positions in the pattern up to which it matches what was read. */
  let reached = new Set([0]);
  const passStars = () => {
    // Positions that are added while the set is walked are walked too.
    for (const at of reached) if (pattern[at] === '*') reached.add(at + 1);
  };
  passStars();
  for (const character of [...scope, '/']) {
    const next = new Set<number>();
    for (const at of reached) {
      if (pattern[at] === '*') next.add(at);
      else if (pattern[at] === '?' || pattern[at] === character) next.add(at + 1);
    }
    reached = next;
    passStars();
  }
  // A later star also matches what an earlier position does.
  const last = Math.max(0, ...[...reached].filter((at) => pattern[at] === '*'));
  const isNeeded = (at: number) => at >= last && at < pattern.length && pattern[at - 1] !== '*';
  const rest = [...reached].filter((at) => at === last || isNeeded(at)).map((at) => pattern.slice(at).join(''));
  return [...new Set([...(globMatcher(glob)(scope) ? [''] : []), ...rest.filter((text) => text !== '')])];
}

/** The allowed scopes of a store that is mounted at a scope, in its own names. */
export function withinBelow(within: Within, scope: string): Within {
  if (within === null) return null;
  const globs = [...new Set(within.flatMap((glob) => globsBelow(glob, scope)))];
  return globs.includes('') && globs.some((glob) => /^\*+$/.test(glob)) ? null : globs;
}

/** Whether both globs match a common text. */
export const globsOverlap = (a: string, b: string): boolean => patternsOverlap([...a], [...b]);

/** The same for globs as lists of characters. Takes time proportional to |left|·|right| for all globs. */
export function patternsOverlap(left: readonly string[], right: readonly string[]): boolean {
  // reachable[j]: the first i characters of `left` and the first j of `right` match a common text.
  let reachable = row(right.length);
  reachable[0] = true;
  for (let i = 0; ; i++) {
    for (let j = 0; j < right.length; j++) if (reachable[j] && right[j] === '*') reachable[j + 1] = true;
    const one = left[i];
    if (one === undefined) return reachable[right.length] as boolean;
    const next = row(right.length);
    for (let j = 0; j <= right.length; j++) {
      if (!reachable[j]) continue;
      const other = right[j];
      // A star matches nothing, or the next character of the other side.
      if (one === '*') {
        next[j] = true;
        if (other !== undefined) reachable[j + 1] = true;
      } else if (other === '*') next[j] = true;
      else if (other !== undefined && (one === '?' || other === '?' || one === other)) next[j + 1] = true;
    }
    reachable = next;
  }
}

const row = (length: number): boolean[] => new Array<boolean>(length + 1).fill(false);

/** What memories of mem0 have instead of a scope. */
interface Mem0Names {
  readonly agent?: string | undefined;
  readonly run?: string | undefined;
}

/** Any text as one segment of a scope. `-` stands for none, so that every memory of an agent is below its segment. */
const segment = (id: string): string => (id === '-' ? '%2D' : encodeURIComponent(id).replaceAll('*', '%2A'));

/** What the scopes of an agent begin with, up to a slash. */
export const mem0Prefix = (agent: string): string => `mem0/agent/${segment(agent)}`;

/** The scope of these; with `*` for what is not given, the glob of all that have them. Null: neither is given. */
export function mem0Scope({ agent, run }: Mem0Names, absent: '-' | '*' = '-'): string | null {
  if (agent === undefined && run === undefined) return null;
  const prefix = agent === undefined ? `mem0/agent/${absent}` : mem0Prefix(agent);
  return `${prefix}/run/${run === undefined ? absent : segment(run)}`;
}
