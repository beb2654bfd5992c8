/** Where a row has a value. */
export type Place =
  | { readonly kind: 'column'; readonly column: string }
  /** Keys into a column that holds JSON. */
  | { readonly kind: 'path'; readonly column: string; readonly path: readonly string[] }
  /** The same for every row. */
  | { readonly kind: 'constant'; readonly value: string };

const NAME = /(?:([A-Za-z_][\w$]*)|"((?:[^"\0]|"")+)")/y;
const STEP = /->>?'((?:[^'\0]|'')*)'/y;
const CONSTANT = /^'((?:[^'\0]|'')*)'$/;

/**
 * Reads the little of SQL that settings say places with: a column (`created_at`, `"pageContent"`), a path
 * (`metadata->'a'->>'b'`, the last arrow as one likes) or a constant (`'shared'`). Bare names are taken as they are,
 * without Postgres' folding to lower case. Undefined for anything else.
 */
export function parsePlace(text: string): Place | undefined {
  const constant = CONSTANT.exec(text)?.[1];
  if (constant !== undefined) return { kind: 'constant', value: constant.replaceAll("''", "'") };
  NAME.lastIndex = 0;
  const [name, bare, quoted] = NAME.exec(text) ?? [];
  if (name === undefined) return undefined;
  const column = bare ?? (quoted as string).replaceAll('""', '"');
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
