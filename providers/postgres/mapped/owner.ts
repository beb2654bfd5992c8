import pg from 'pg';
import { toTextArray } from '../rows.ts';
import type { Conditions } from '../tables/conditions.ts';
import { hasContainment, hasIndexOn } from './indexes.ts';
import { documentSql, nested, textSql } from './json.ts';
import type { Owner } from './layout.ts';
import type { Merged } from './mapping.ts';
import type { Place } from './place.ts';
import { isJson, isText, jsonSql } from './reads.ts';
import type { Column, Table } from './table.ts';

export interface OwnerParts {
  readonly owner: Owner;
  /** What `always` demands of the owner of a row, whoever asks. */
  isSomebody(where: Conditions): string;
  /** Whether an index leads to the rows of a user. */
  readonly indexed: boolean;
}

/** Types that owners may have besides JSON. */
const TYPES = ['text', 'varchar', 'bpchar', 'citext', 'uuid', 'int2', 'int4', 'int8'];

/** What is wrong with the place of the owner, whose type admits a text. */
export function ownerMistake(table: Table, { fields, user_pattern }: Merged): string | undefined {
  const place = fields.get('user_id');
  if (place?.kind === 'constant' && toUserBy(user_pattern)(place.value) === undefined) {
    return `OMP_MAPPING_USER_ID: the constant '${place.value}' is not what OMP_MAPPING_USER_PATTERN=${user_pattern} makes of a user`;
  }
  const column = place?.kind === 'column' ? table.columns.get(place.column) : undefined;
  if (column === undefined || isJson(column.base)) return undefined;
  const told = `the column "${column.name}" of ${table.schema}.${table.name} is ${column.type}`;
  if (!TYPES.includes(column.base)) {
    return `OMP_MAPPING_USER_ID: ${told}; it would have to be text, varchar, uuid, smallint, integer, bigint or JSON`;
  }
  return isText(column.base) || user_pattern === '{user}'
    ? undefined
    : `OMP_MAPPING_USER_PATTERN: ${told}, which holds nothing but the id: leave the pattern out`;
}

function toUserBy(pattern: string): Owner['toUser'] {
  const [before = '', after = ''] = pattern.split('{user}');
  return (stored) =>
    stored.length > before.length + after.length && stored.startsWith(before) && stored.endsWith(after)
      ? stored.slice(before.length, stored.length - after.length)
      : undefined;
}

/** Whose rows are whose. `read` is SQL of the stored owner as text. */
export function createOwner(table: Table, { fields, user_pattern: pattern }: Merged, read: string): OwnerParts {
  const place = fields.get('user_id') as Place;
  const [before = '', after = ''] = pattern.split('{user}');
  const column = place.kind === 'constant' ? undefined : table.columns.get(place.column);
  const holds = fits(column && place.kind === 'column' ? column.base : 'text');
  const toStored = (user: string) => (holds(before + user + after) ? before + user + after : undefined);
  const { is, indexed } =
    place.kind === 'constant' ? constantly(place.value) : equality(table, place, column as Column);
  return {
    owner: {
      is: (where, users) => {
        const stored = users.flatMap((user) => toStored(user) ?? []);
        return stored.length === 0 ? 'false' : is(where, stored);
      },
      toUser: toUserBy(pattern),
      toStored,
    },
    isSomebody: (where) => (pattern === '{user}' ? `${read} <> ''` : matches(where, read, before, after)),
    indexed,
  };
}

const matches = (where: Conditions, read: string, before: string, after: string): string => {
  const literally = (text: string) => text.replace(/[\\%_]/g, '\\$&');
  return `(${read}) collate "C" like ${where.place(`${literally(before)}_%${literally(after)}`)}::text`;
};

/** What a column of a type can hold, in the one spelling in which it is read back. */
export function fits(base: string): (text: string) => boolean {
  if (base === 'uuid') return (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
  const bits = { int2: 16, int4: 32, int8: 64 }[base];
  if (bits !== undefined) {
    return (text) => /^(?:0|-?[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(bits, BigInt(text)) === BigInt(text);
  }
  // Blanks at the end of a char(n) are not kept.
  return (text) => !text.includes('\0') && text.isWellFormed() && !(base === 'bpchar' && text.endsWith(' '));
}

interface Equality {
  is(where: Conditions, stored: readonly string[]): string;
  readonly indexed: boolean;
}

const constantly = (value: string): Equality => ({
  is: (_where, stored) => (stored.includes(value) ? 'true' : 'false'),
  indexed: true,
});

/** In the form that the indexes of this table serve. */
function equality(
  table: Table,
  place: Exclude<Place, { kind: 'constant' }>,
  { base, name, type, deterministic }: Column,
): Equality {
  const column = `t.${pg.escapeIdentifier(name)}`;
  const ordered = hasIndexOn(table, place);
  if (isJson(base)) {
    const path = place.kind === 'path' ? place.path : [];
    const contained = base === 'jsonb' && !ordered && hasContainment(table, name);
    // On json it fails with some documents, unless there is an index on it: they would not have got into the table.
    const raw = path.length > 0 && (base === 'jsonb' || ordered);
    const text = raw ? textSql(column, path) : `(${jsonSql('text', documentSql(column, base), path)})`;
    const is: Equality['is'] = (where, stored) => {
      const equal = oneOf(where, text, { stored, type: 'text' });
      return contained ? `${contains(where, column, { path, stored })} and ${equal}` : equal;
    };
    return { is, indexed: ordered || contained };
  }
  const is: Equality['is'] = (where, stored) => {
    const indexed = oneOf(where, column, {
      stored,
      type: base === 'citext' ? type : base === 'varchar' ? 'text' : base,
    });
    if (deterministic && base !== 'citext') return indexed;
    // The index also finds what differs in case, say; that is another user.
    return `${indexed} and ${oneOf(where, `${column}::text collate "C"`, { stored, type: 'text' })}`;
  };
  return { is, indexed: ordered };
}

interface Stored {
  readonly stored: readonly string[];
}

const oneOf = (where: Conditions, sql: string, { stored, type }: Stored & { readonly type: string }): string =>
  stored.length === 1
    ? `${sql} = ${where.place(stored[0])}::${type}`
    : `${sql} = any(${where.place(toTextArray(stored))}::${type}[])`;

const JSON_SCALAR = /^(?:true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?)$/;

/** An owner may be kept as a text or, if it looks like one, as a number. */
function contains(
  where: Conditions,
  column: string,
  { path, stored }: Stored & { readonly path: readonly string[] },
): string {
  const documents = stored.flatMap((text) => [
    nested(path, JSON.stringify(text)),
    ...(JSON_SCALAR.test(text) ? [nested(path, text)] : []),
  ]);
  return `${column} @> any(${where.place(toTextArray(documents))}::jsonb[])`;
}
