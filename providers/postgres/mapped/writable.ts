import { grantOf } from './catalogue.ts';
import { hasUnique } from './indexes.ts';
import type { Field, Id } from './layout.ts';
import { listed, type Merged, settingOf } from './mapping.ts';
import { isText } from './reads.ts';
import type { Column, Table } from './table.ts';

const SETTING = 'OMP_MAPPING_WRITABLE';
const ROLE = 'the role of the gateway';
/** Characters of what is made for an id: `mem_` and a ULID, or a UUID. */
const LENGTHS = { text: 30, uuid: 36 } as const;

export interface Writing {
  readonly table: Table;
  readonly merged: Merged;
  /** Fewer than the mapping names where it names them wrongly, which was told already; the same of fields. */
  readonly ids: readonly Column[];
  readonly fields: Readonly<Record<string, Field>>;
}

/** What new rows get for an id: as it is told, else by the type of the column. */
export function freshIds({ new_ids }: Merged, [column]: readonly Column[]): Id['fresh'] {
  if (new_ids !== undefined) return new_ids;
  if (column === undefined || isText(column.base)) return 'text';
  return column.base === 'uuid' ? 'uuid' : 'database';
}

/** Why rows cannot be added, changed and deleted as they have to be. */
export function writeMistakes({ table, merged, ids, fields }: Writing): string[] {
  const label = `${table.schema}.${table.name}`;
  const lacks = (['insert', 'update', 'delete'] as const).filter((what) => !table.may[what]);
  const closed = ['content', 'user_id'].filter((name) => {
    const field = fields[name];
    return field !== undefined && field.write === undefined && field.constant === undefined;
  });
  const empty = unfilled({ table, merged, ids, fields });
  const mistakes: string[] = [];
  if (lacks.length > 0) {
    const what = listed(lacks.map((each) => each.toUpperCase()));
    const why =
      table.kind === 'view' ? ', or nobody can write through that view' : `; ${grantOf(lacks.join(', '), table)}`;
    mistakes.push(`${SETTING}: ${ROLE} has no ${what} on ${label}${why}`);
  }
  for (const name of closed) {
    mistakes.push(`${SETTING}: the database computes the column that ${settingOf(name)} names, so nobody can write it`);
  }
  if (empty.length > 0) {
    mistakes.push(
      `${SETTING}: ${label} demands a value in ${listed(empty)}, which no setting names; give ${empty.length > 1 ? 'them defaults' : 'it a default'}`,
    );
  }
  if (ids.length < merged.id.length) return mistakes;
  const names = ids.map(({ name }) => name);
  if (!hasUnique(table, names)) {
    const quoted = listed(names.map((name) => `"${name}"`));
    mistakes.push(
      `${SETTING}: ${label} has no primary key or unique index over exactly ${quoted}, so a write could hit several rows`,
    );
  }
  const mistake = idMistake(freshIds(merged, ids), ids, label);
  return mistake === undefined ? mistakes : [...mistakes, mistake];
}

function idMistake(fresh: Id['fresh'], [id, ...more]: readonly Column[], label: string): string | undefined {
  if (id === undefined || more.length > 0) return `${SETTING}: ids of several columns cannot be made`;
  const told = `OMP_MAPPING_NEW_IDS=${fresh}: the column "${id.name}" of ${label} is ${id.type}`;
  if (fresh === 'database') return id.hasDefault ? undefined : `${told} and has no default`;
  if (id.generated) return `${told} and filled by the database; use database`;
  if (fresh === 'uuid' && id.base === 'uuid') return undefined;
  const length = Number(/\((\d+)\)$/.exec(id.type)?.[1] ?? Number.POSITIVE_INFINITY);
  return isText(id.base) && length >= LENGTHS[fresh]
    ? undefined
    : `${told}, which does not take ids of ${LENGTHS[fresh]} characters; use ${id.base === 'uuid' ? 'uuid' : 'database'}`;
}

/** Columns that have to have a value and get none from us. */
function unfilled({ table, merged, ids, fields }: Writing): string[] {
  const places = Object.keys(fields).map((name) => merged.fields.get(name as never));
  const filled = new Set([
    ...ids.map(({ name }) => name),
    ...places.flatMap((place) => (place && place.kind !== 'constant' ? [place.column] : [])),
    merged.embedding,
    merged.collection?.column,
  ]);
  return [...table.columns.values()]
    .filter(({ name, notNull, hasDefault }) => notNull && !hasDefault && !filled.has(name))
    .map(({ name }) => `"${name}"`);
}
