/**
 * A scope written as tags, for backends that know only tags. `coding/preferences` becomes
 *
 *     omp:scope:coding/preferences     the scope itself, read back from the record
 *     omp:under:coding                 one for every ancestor, so that whole-segment prefixes are filtered by the backend
 *
 * A caller's own tag that begins with the reserved prefix is stored escaped: it stays an ordinary tag, visible and
 * searchable as the caller wrote it, and can never pose as a scope.
 */
const RESERVED = 'omp:';
const SCOPE = `${RESERVED}scope:`;
const UNDER = `${RESERVED}under:`;
const ESCAPED = `${RESERVED}tag:`;

export const escapeTag = (tag: string): string => (tag.startsWith(RESERVED) ? ESCAPED + tag : tag);

/** Everything the backend is to store for these tags and this scope. */
export function toStoredTags(tags: readonly string[], scope: string | null): string[] {
  const stored = tags.map(escapeTag);
  if (scope === null) return stored;
  for (let slash = scope.indexOf('/'); slash >= 0; slash = scope.indexOf('/', slash + 1)) {
    stored.push(UNDER + scope.slice(0, slash));
  }
  stored.push(SCOPE + scope);
  return stored;
}

/** The reverse: what the caller may see. */
export function fromStoredTags(stored: readonly string[]): { tags: string[]; scope: string | null } {
  const tags: string[] = [];
  let scope: string | null = null;
  for (const tag of stored) {
    if (!tag.startsWith(RESERVED)) tags.push(tag);
    else if (tag.startsWith(ESCAPED)) tags.push(tag.slice(ESCAPED.length));
    else if (tag.startsWith(SCOPE)) scope = tag.slice(SCOPE.length);
  }
  return { tags, scope };
}

/**
 * The tags that every record matching a scope filter carries, given the literal text all its matches start with:
 * an ancestor when that text contains a whole segment, none when it ends inside the first one.
 */
export function tagsOfLiteral(literal: string): string[] {
  const slash = literal.lastIndexOf('/');
  return slash > 0 ? [UNDER + literal.slice(0, slash)] : [];
}

export const tagsOfExactScope = (scope: string): string[] => [SCOPE + scope];
