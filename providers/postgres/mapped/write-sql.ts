import type { MemoryPatch, NewMemory } from '#provider';
import type { Conditions } from '../sql/conditions.ts';
import { toTextArray } from '../sql/values.ts';
import { FIELDS, type FieldName, FORMS } from './field-mapping.ts';
import type { Layout, Write } from './layout.ts';
import type { Reading } from './row-reading.ts';

export interface NewRow {
  /** With the user as the table stores it. */
  readonly input: NewMemory;
  /** Undefined if the database creates it. */
  readonly id: string | undefined;
  readonly created_at: string;
  readonly vector: Float32Array;
}

/** The columns of a new row, and SQL of their values. The database fills other columns with their defaults. */
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
      row.set(write.column, write.from(where.bind(toParameter(name, value))));
    }
  }
  for (const [column, type] of documents) {
    row.set(column, `${where.bind(newJson(paths.get(column) ?? []))}::${type}`);
  }
  const [own] = layout.id.columns;
  if (id !== undefined && own) row.set(own.column, `${where.bind(id)}${own.cast}`);
  row.set(layout.vector.column, `${where.bind(layout.vector.encode(vector))}${layout.vector.cast}`);
  for (const { column, value } of layout.newColumns(where)) row.set(column, value);
  return row;
}

export interface Changes {
  readonly patch: MemoryPatch;
  /** Given exactly if the content changes. */
  readonly vector: Float32Array | undefined;
  /** An update must not make a JSON column larger than this. */
  readonly max_bytes: number;
}

interface WriteTarget {
  readonly layout: Layout;
  readonly reading: Reading;
  /** Of the statement. Conditions are added, so that the update loses nothing that a row holds. */
  readonly where: Conditions;
}

/** The assignments of an update, one for each column. */
export function rowChanges({ layout, reading, where }: WriteTarget, { patch, vector, max_bytes }: Changes): string[] {
  const { fields } = layout;
  const sets: string[] = [];
  const documents = new Map<string, { write: Write; writes: JsonWrite[] }>();
  const inDocument = (write: Write, path: readonly string[], value: JsonWrite['value']) => {
    const document = documents.get(write.column) ?? { write, writes: [] };
    // A field with a path knows the type of the column.
    documents.set(write.column, { write: write.kind === 'path' ? write : document.write, writes: document.writes });
    document.writes.push({ path, value });
  };
  const asJson = (value: unknown) => () => `${where.bind(JSON.stringify(value))}::jsonb`;

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
      sets.push(`${write.column} = ${write.from(where.bind(toParameter(name, value)))}`);
    } else if (value === null) inDocument(write, write.path, undefined);
    else if (FORMS[name] === 'time') {
      const moment = `${where.bind(value)}::timestamptz`;
      inDocument(write, write.path, (present) => momentAsJson(moment, present));
    } else inDocument(write, write.path, asJson(value));
  }
  if (vector) {
    const { column, cast, encode } = layout.vector;
    sets.push(`${column} = ${where.bind(encode(vector))}${cast}`);
  }

  const changed = fields.updated_at?.write;
  if (changed && reading.updated !== undefined) {
    // Later than the last change, even if the clock went back or both are in the same millisecond.
    const now = `${where.bind(new Date().toISOString())}::timestamptz`;
    const moment = `greatest(${now}, ${reading.updated} + interval '1 millisecond')`;
    if (changed.kind === 'column') sets.push(`${changed.column} = ${changed.from(`(${momentAsText(moment)})`)}`);
    else inDocument(changed, changed.path, (present) => momentAsJson(moment, present));
  }

  for (const [column, { write, writes }] of documents) {
    const { value, required } = writeJson(where, `t.${column}::jsonb`, writes);
    sets.push(`${column} = ${write.kind === 'path' ? `${value}::${write.type}` : write.from(`(${value}::text)`)}`);
    required.forEach(where.and);
    const size = (sql: string) => `coalesce(octet_length((${sql})::text), 0)`;
    where.and(`${size(value)} <= greatest(${where.bind(max_bytes)}::int8, ${size(`t.${column}`)})`);
  }
  return sets;
}

/** Null and empty values count as not given. */
export const isGiven = (value: unknown): boolean =>
  value != null && !(typeof value === 'object' && Object.keys(value).length === 0);

/** Columns that fields are mapped into by a path, and whether they are json or jsonb. */
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

// JSON columns

/** A key to set in a column that holds JSON. */
interface JsonWrite {
  /** Never empty. */
  readonly path: readonly string[];
  /** SQL of the new value as jsonb, given SQL of the current one. Undefined removes the key. */
  readonly value: ((present: string) => string) | undefined;
}

type Node = Map<string, Node | JsonWrite['value']>;

interface JsonColumn {
  /** SQL of the whole new value, as jsonb. */
  readonly value: string;
  /** Conditions under which nothing is lost: wherever keys are set, the row holds an object or nothing. */
  readonly required: readonly string[];
}

/**
 * Sets some keys of a JSON document and keeps all others. The database computes it from the row at the time of the write, so
 * that concurrent changes of other keys are kept. Creates missing objects on the path. `document` is SQL of the current
 * value as jsonb.
 */
function writeJson(where: Conditions, document: string, writes: readonly JsonWrite[]): JsonColumn {
  const required: string[] = [];
  const build = (present: string, node: Node): string => {
    required.push(`coalesce(jsonb_typeof(${present}), 'null') in ('object', 'null')`);
    const object = `case when jsonb_typeof(${present}) = 'object' then ${present} else '{}'::jsonb end`;
    const set: string[] = [];
    const removed: string[] = [];
    for (const [key, wanted] of node) {
      const name = `${where.bind(key)}::text`;
      const there = `(${present} -> ${name})`;
      if (wanted === undefined) removed.push(name);
      else set.push(`${name}, ${wanted instanceof Map ? build(there, wanted) : wanted(there)}`);
    }
    let merged = `(${object})`;
    while (set.length > 0) merged += ` || jsonb_build_object(${set.splice(0, MAX_PAIRS).join(', ')})`;
    return `(${removed.reduce((sql, name) => `(${sql}) - ${name}`, merged)})`;
  };
  return { value: build(document, toTree(writes)), required };
}

/** PostgreSQL passes a function 100 arguments at most. */
const MAX_PAIRS = 50;

/** The same for a new row: plain values instead of SQL. */
function newJson(writes: readonly { readonly path: readonly string[]; readonly value: unknown }[]): string {
  const root: Record<string, unknown> = Object.create(null);
  for (const { path, value } of writes) {
    const last = path.at(-1);
    if (last === undefined) {
      Object.assign(root, value);
      continue;
    }
    let object = root;
    for (const key of path.slice(0, -1)) {
      object[key] ??= Object.create(null);
      object = object[key] as Record<string, unknown>;
    }
    object[last] = value;
  }
  return JSON.stringify(root);
}

function toTree(writes: readonly JsonWrite[]): Node {
  const root: Node = new Map();
  for (const { path, value } of writes) {
    let node = root;
    for (const key of path.slice(0, -1)) {
      const next = node.get(key);
      const inner: Node = next instanceof Map ? next : new Map();
      node.set(key, inner);
      node = inner;
    }
    node.set(path.at(-1) as string, value);
  }
  return root;
}

/** A time as JSON, in the form of the current value: a number in the same unit, else ISO 8601. All are SQL. */
const momentAsJson = (moment: string, present: string): string =>
  `case when jsonb_typeof(${present}) = 'number' then to_jsonb(trim_scale(
     date_part('epoch', ${moment})::numeric * case when abs((${present})::numeric) < 1e11 then 1 else 1000 end))
   else to_jsonb(${momentAsText(moment)}) end`;

const momentAsText = (moment: string): string =>
  `to_char(${moment} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
