import { type NewMemory, OmpError } from '#contract';
import { PROVIDER } from '../client/errors.ts';
import type { Fields } from './fields.ts';

/**
 * Throws `unsupported_capability` naming every field that is given and that such an index has no place for: what cannot
 * be kept is refused, never dropped. Scopes do not get here: the gateway rejects them.
 */
export function requirePlaces(fields: Fields, given: Partial<NewMemory>): void {
  const { tags = [], source, confidence, valid_from, valid_to, supersedes = [], extensions = {} } = given;
  const homeless = [
    ...(tags.length > 0 && fields.tags === undefined ? ['tags'] : []),
    ...Object.entries({ source, confidence, valid_from, valid_to })
      .filter(([, value]) => value != null)
      .map(([name]) => name),
    ...(supersedes.length > 0 ? ['supersedes'] : []),
    ...Object.keys(extensions),
  ];
  if (homeless.length > 0) throw unsupported(`${homeless.join(', ')}: the index has no place for this`);
}

/** The same for what a list or a search asks for. */
export function requireTagsField(fields: Fields, tags: readonly string[]): void {
  if (tags.length > 0 && fields.tags === undefined) throw unsupported('tag: the index keeps no tags');
}

const unsupported = (message: string) => new OmpError('unsupported_capability', message, { provider: PROVIDER });
