import { type NewMemory, OmpError } from '#contract';
import { PROVIDER } from '../errors.ts';
import { FIELDS } from './fields.ts';
import type { Field, Layout } from './layout.ts';

export const unsupported = (message: string): OmpError =>
  new OmpError('unsupported_capability', message, { provider: PROVIDER });

/**
 * Throws `unsupported_capability` naming every field that is given and that the table has no place for: what cannot be
 * kept is refused, never dropped. Null and empty lists count as not given. A field that every row has alike takes that
 * value. Scopes without a place do not get here: the gateway rejects them.
 */
export function requirePlaces({ fields }: Layout, given: Partial<NewMemory>): void {
  const { extensions = {}, ...others } = given;
  const homeless = FIELDS.filter((name) => name in others).filter((name) => {
    const value = others[name as keyof typeof others];
    return isGiven(value) && !takes(fields[name], value);
  });
  const keys = fields.extensions?.write ? [] : Object.keys(extensions);
  const names = [...homeless, ...keys];
  if (names.length > 0) throw unsupported(`${names.join(', ')}: the table has no place for this`);
}

/** Null and what is empty says nothing. */
export const isGiven = (value: unknown): boolean =>
  value != null && !(typeof value === 'object' && Object.keys(value).length === 0);

const takes = (field: Field | undefined, value: unknown): boolean =>
  field !== undefined &&
  (field.write !== undefined || field.constant === (typeof value === 'string' ? value : JSON.stringify(value)));

/** The same for what a list or a search asks for. */
export function requireTags({ hasTags }: Layout, tags: readonly string[]): void {
  if (tags.length > 0 && !hasTags) throw unsupported('tag: the table keeps no tags');
}
