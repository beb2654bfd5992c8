/** The fields of a memory besides its id and vector, and the form that each has on the wire. */
export const FORMS = {
  content: 'text',
  user_id: 'text',
  scope: 'text',
  tags: 'list',
  source: 'json',
  confidence: 'number',
  created_at: 'time',
  updated_at: 'time',
  valid_from: 'time',
  valid_to: 'time',
  supersedes: 'list',
  extensions: 'json',
} as const;

export type FieldName = keyof typeof FORMS;
export type Form = (typeof FORMS)[FieldName];
export const FIELDS = Object.keys(FORMS) as readonly FieldName[];

export const settingOf = (key: string): string => `OMP_MAPPING_${key.toUpperCase()}`;

/** Where a row holds the value of a field. */
export type ColumnReference =
  | { readonly kind: 'column'; readonly column: string }
  /** Keys into a column that holds JSON. */
  | { readonly kind: 'path'; readonly column: string; readonly path: readonly string[] }
  /** The same value for every row. */
  | { readonly kind: 'constant'; readonly value: string };

/** A reference to a column or into one. */
export type StoredReference = Exclude<ColumnReference, { readonly kind: 'constant' }>;

const NAME = /(?:([A-Za-z_][\w$]*)|"((?:[^"\0]|"")+)")/y;
const STEP = /->>?'((?:[^'\0]|'')*)'/y;
const CONSTANT = /^'((?:[^'\0]|'')*)'$/;

/**
 * Parses the subset of SQL that a field mapping uses: a column (`created_at`, `"pageContent"`), a path
 * (`metadata->'a'->>'b'`; the last arrow may be either) or a constant (`'shared'`). Unquoted names keep their case: Postgres'
 * folding to lower case does not apply. Undefined for anything else.
 */
export function parseColumnReference(text: string): ColumnReference | undefined {
  const constant = CONSTANT.exec(text)?.[1];
  if (constant !== undefined) return { kind: 'constant', value: constant.replaceAll("''", "'") };
  NAME.lastIndex = 0;
  const [name, unquoted, quoted] = NAME.exec(text) ?? [];
  if (name === undefined) return undefined;
  const column = unquoted ?? (quoted as string).replaceAll('""', '"');
  const path: string[] = [];
  let end = name.length;
  while (end < text.length) {
    STEP.lastIndex = end;
    const [step, key] = STEP.exec(text) ?? [];
    if (step === undefined) return undefined;
    path.push((key as string).replaceAll("''", "'"));
    end += step.length;
  }
  return path.length === 0 ? { kind: 'column', column } : { kind: 'path', column, path };
}
