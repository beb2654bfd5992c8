import type { MemoryPatch, NewMemory } from '#contract';
import { toTextArray } from '../rows.ts';
import type { Conditions } from '../tables/conditions.ts';
import { FIELDS, type FieldName, FORMS } from './fields.ts';
import { type JsonWrite, momentAsJson, momentAsText, newJson, writeJson } from './json-writes.ts';
import type { Layout, Write } from './layout.ts';
import { isGiven } from './places.ts';
import type { Reading } from './record.ts';

export interface NewRow {
  /** What is stored of the user, instead of the id. */
  readonly input: NewMemory;
  /** Undefined: the database makes it. */
  readonly id: string | undefined;
  readonly created_at: string;
  readonly vector: Float32Array;
}

/** The columns of a new row, and SQL of their values. Columns that are not mentioned get the owner's defaults. */
export function newRow(layout: Layout, where: Conditions, { input, id, created_at, vector }: NewRow) {
  const values = { ...input, created_at, updated_at: created_at };
  const documents = documentsOf(layout);
  const paths = new Map([...documents.keys()].map((column) => [column, [] as Parameters<typeof newJson>[0][number][]]));
  const row = new Map<string, string>();
  for (const name of FIELDS) {
    const write = layout.fields[name]?.write;
    if (!write) continue;
    const value = values[name];
    const document = paths.get(write.column);
    if (document) {
      if (isGiven(value)) document.push({ path: write.kind === 'path' ? write.path : [], value });
    } else if (write.kind === 'column' && !(value === null && write.notNull)) {
      row.set(write.column, write.from(where.place(toParameter(name, value))));
    }
  }
  for (const [column, type] of documents) {
    row.set(column, `${where.place(newJson(paths.get(column) ?? []))}::${type}`);
  }
  const [own] = layout.id.columns;
  if (id !== undefined && own) row.set(own.column, `${where.place(id)}${own.cast}`);
  row.set(layout.vector.column, `${where.place(layout.vector.encode(vector))}${layout.vector.cast}`);
  for (const { column, value } of layout.newColumns(where)) row.set(column, value);
  return row;
}

export interface Changes {
  readonly patch: MemoryPatch;
  /** Given exactly when the content changes. */
  readonly vector: Float32Array | undefined;
  /** What lies in one JSON column may not grow beyond this. */
  readonly max_bytes: number;
}

interface Target {
  readonly layout: Layout;
  readonly reading: Reading;
  /** Of the statement; what has to hold of a row so that nothing in it is lost is added. */
  readonly where: Conditions;
}

/** The assignments of an update. What lies in one JSON column is set by one of them. */
export function rowChanges({ layout, reading, where }: Target, { patch, vector, max_bytes }: Changes): string[] {
  const { fields } = layout;
  const sets: string[] = [];
  const documents = new Map<string, { write: Write; writes: JsonWrite[] }>();
  const inDocument = (write: Write, path: readonly string[], value: JsonWrite['value']) => {
    const document = documents.get(write.column) ?? { write, writes: [] };
    // Whichever field lies in it by a path knows the type of the column.
    documents.set(write.column, { write: write.kind === 'path' ? write : document.write, writes: document.writes });
    document.writes.push({ path, value });
  };
  const asJson = (value: unknown) => () => `${where.place(JSON.stringify(value))}::jsonb`;

  const { extensions = {}, ...rest } = patch;
  const shared = fields.extensions?.write;
  for (const [key, value] of Object.entries(extensions)) {
    if (shared)
      inDocument(
        shared,
        [...(shared.kind === 'path' ? shared.path : []), key],
        value === null ? undefined : asJson(value),
      );
  }
  for (const [name, value] of Object.entries(rest) as [keyof typeof rest, unknown][]) {
    const write = fields[name]?.write;
    if (!write) continue;
    if (write.kind === 'column') {
      sets.push(`${write.column} = ${write.from(where.place(toParameter(name, value)))}`);
    } else if (value === null) inDocument(write, write.path, undefined);
    else if (FORMS[name] === 'time') {
      const moment = `${where.place(value)}::timestamptz`;
      inDocument(write, write.path, (present) => momentAsJson(moment, present));
    } else inDocument(write, write.path, asJson(value));
  }
  if (vector) {
    const { column, cast, encode } = layout.vector;
    sets.push(`${column} = ${where.place(encode(vector))}${cast}`);
  }

  const changed = fields.updated_at?.write;
  if (changed && reading.updated !== undefined) {
    // Later than the last change, also when the clock went back or both fell into one millisecond.
    const now = `${where.place(new Date().toISOString())}::timestamptz`;
    const moment = `greatest(${now}, ${reading.updated} + interval '1 millisecond')`;
    if (changed.kind === 'column') sets.push(`${changed.column} = ${changed.from(`(${momentAsText(moment)})`)}`);
    else inDocument(changed, changed.path, (present) => momentAsJson(moment, present));
  }

  for (const [column, { write, writes }] of documents) {
    const { value, demands } = writeJson(where, `t.${column}::jsonb`, writes);
    sets.push(`${column} = ${write.kind === 'path' ? `${value}::${write.type}` : write.from(`(${value}::text)`)}`);
    demands.forEach(where.and);
    const size = (sql: string) => `coalesce(octet_length((${sql})::text), 0)`;
    where.and(`${size(value)} <= greatest(${where.place(max_bytes)}::int8, ${size(`t.${column}`)})`);
  }
  return sets;
}

/** Columns that fields have places in, and whether they are json or jsonb. */
function documentsOf({ fields }: Layout): Map<string, 'json' | 'jsonb'> {
  const documents = new Map<string, 'json' | 'jsonb'>();
  for (const name of FIELDS) {
    const write = fields[name]?.write;
    if (write?.kind === 'path') documents.set(write.column, write.type);
  }
  return documents;
}

/** A value as `Write.from` takes it. */
function toParameter(name: FieldName, value: unknown): unknown {
  if (value === null) return null;
  const form = FORMS[name];
  if (form === 'list') return toTextArray(value as readonly string[]);
  return form === 'json' ? JSON.stringify(value) : value;
}
