import type { Conditions } from '../tables/conditions.ts';

/** One thing to set in a column that holds JSON. */
export interface JsonWrite {
  /** Keys that lead there; never empty. */
  readonly path: readonly string[];
  /** SQL of the new value as jsonb, of SQL of the present one; undefined: the key goes away. */
  readonly value: ((present: string) => string) | undefined;
}

type Node = Map<string, Node | JsonWrite['value']>;

/** What a statement sets a JSON column to, and what has to hold of the row for that. */
export interface JsonColumn {
  /** SQL of the whole new value, as jsonb. */
  readonly value: string;
  /** Conditions under which nothing is lost: where keys are to be set, there is an object or nothing. */
  readonly demands: readonly string[];
}

/**
 * Sets some keys of a JSON document and leaves all others as they are. Computed by the database from what the row holds
 * when it is written, so that concurrent changes of other keys stay. Objects on the way are made where they are missing.
 * `document`: SQL of the present value as jsonb.
 */
export function writeJson(where: Conditions, document: string, writes: readonly JsonWrite[]): JsonColumn {
  const demands: string[] = [];
  const build = (present: string, node: Node): string => {
    demands.push(`coalesce(jsonb_typeof(${present}), 'null') in ('object', 'null')`);
    const object = `case when jsonb_typeof(${present}) = 'object' then ${present} else '{}'::jsonb end`;
    const set: string[] = [];
    const gone: string[] = [];
    for (const [key, wanted] of node) {
      const name = `${where.place(key)}::text`;
      const there = `(${present} -> ${name})`;
      if (wanted === undefined) gone.push(name);
      else set.push(`${name}, ${wanted instanceof Map ? build(there, wanted) : wanted(there)}`);
    }
    const merged = set.length > 0 ? `(${object}) || jsonb_build_object(${set.join(', ')})` : `(${object})`;
    return `(${gone.reduce((sql, name) => `(${sql}) - ${name}`, merged)})`;
  };
  return { value: build(document, toTree(writes)), demands };
}

/** The same for a row that is not there yet: plain values instead of SQL. */
export function newJson(writes: readonly { readonly path: readonly string[]; readonly value: unknown }[]): string {
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

/** A moment as JSON, in the form in which the row has one: a number in its unit, else ISO 8601. All are SQL. */
export const momentAsJson = (moment: string, present: string): string =>
  `case when jsonb_typeof(${present}) = 'number' then to_jsonb(trim_scale(
     date_part('epoch', ${moment})::numeric * case when abs((${present})::numeric) < 1e11 then 1 else 1000 end))
   else to_jsonb(${momentAsText(moment)}) end`;

export const momentAsText = (moment: string): string =>
  `to_char(${moment} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
