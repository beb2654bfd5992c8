/*
 * Encoding of a scope as tags. `coding/preferences` becomes
 *
 *     omp:scope:coding/preferences     the scope itself, decoded when the record is read
 *     omp:under:coding                 one for every ancestor, so that the backend can filter by whole-segment prefixes
 *
 * A caller's tag that begins with the reserved prefix is stored escaped: it remains an ordinary tag for the caller and
 * cannot forge a scope.
 */

const RESERVED = 'omp:';
const SCOPE = `${RESERVED}scope:`;
const UNDER = `${RESERVED}under:`;
const ESCAPED = `${RESERVED}tag:`;

export const escapeTag = (tag: string): string => (tag.startsWith(RESERVED) ? ESCAPED + tag : tag);

/** The stored tags of a record with these tags and this scope. */
export function toStoredTags(tags: readonly string[], scope: string | null): string[] {
  const storedTags = tags.map(escapeTag);
  if (scope === null) return storedTags;
  for (let slash = scope.indexOf('/'); slash >= 0; slash = scope.indexOf('/', slash + 1)) {
    storedTags.push(UNDER + scope.slice(0, slash));
  }
  storedTags.push(SCOPE + scope);
  return storedTags;
}

/** The tags and the scope of stored tags. */
export function fromStoredTags(storedTags: readonly string[]): { tags: string[]; scope: string | null } {
  const tags: string[] = [];
  let scope: string | null = null;
  for (const tag of storedTags) {
    if (!tag.startsWith(RESERVED)) tags.push(tag);
    else if (tag.startsWith(ESCAPED)) tags.push(tag.slice(ESCAPED.length));
    else if (tag.startsWith(SCOPE)) scope = tag.slice(SCOPE.length);
  }
  return { tags, scope };
}

/**
 * Tags that all records of a scope filter have, where all matching scopes start with `literal`: an ancestor if `literal`
 * contains a whole segment, else none.
 */
export function tagsOfLiteral(literal: string): string[] {
  const slash = literal.lastIndexOf('/');
  return slash > 0 ? [UNDER + literal.slice(0, slash)] : [];
}

export const tagsOfExactScope = (scope: string): string[] => [SCOPE + scope];
