import type { NewMemory } from '#contract';
import { FIELDS } from './field-mapping.ts';
import type { Field, Layout } from './layout.ts';
import { unsupported } from './mapped-statements.ts';
import { isGiven } from './write-sql.ts';

/**
 * Throws `unsupported_capability` with every given field that the table cannot hold: nothing is dropped silently. Null and
 * empty lists count as not given. A constant field accepts its value. Unmapped scopes do not reach this: the gateway
 * rejects or emulates them.
 */
export function requirePlaces({ fields }: Layout, given: Partial<NewMemory>): void {
  const { extensions = {}, ...others } = given;
  const unmapped = FIELDS.filter((name) => name in others).filter((name) => {
    const value = others[name as keyof typeof others];
    return isGiven(value) && !accepts(fields[name], value);
  });
  const keys = fields.extensions?.write ? [] : Object.keys(extensions);
  const names = [...unmapped, ...keys];
  if (names.length > 0) throw unsupported(`${names.join(', ')}: the table has no column for this`);
}

const accepts = (field: Field | undefined, value: unknown): boolean =>
  field !== undefined &&
  (field.write !== undefined || field.constant === (typeof value === 'string' ? value : JSON.stringify(value)));
