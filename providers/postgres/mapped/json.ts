import pg from 'pg';
import type { Place } from './place.ts';

type Path = Extract<Place, { readonly kind: 'path' }>;

/** A backslash escape that text cannot hold, after escaped backslashes and pairs of surrogates are taken away. */
const NO_TEXT = pg.escapeLiteral(String.raw`\\u(?:0000|[dD][89a-fA-F])`);
const ESCAPED_BACKSLASH = pg.escapeLiteral(String.raw`\\\\`);
const SURROGATES = pg.escapeLiteral(String.raw`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`);
const JSON_TEXT = pg.escapeLiteral(String.raw`"(?:\\.|[^"\\])*"`);
/** More than `numeric` takes, generously. */
const NO_NUMBER = `'[eE][+-]?[0-9]{4}|(?:[0-9]{64}){64}'`;
const SUSPECT = pg.escapeLiteral(String.raw`\\u|[0-9][eE][+-]?[0-9]{4}`);
const SUSPECT_BYTES = 4_096;

/**
 * A column of JSON as jsonb. What `json` admits and jsonb does not (NUL, half a surrogate pair, numbers beyond measure)
 * raises an error, in `->` too: such a document is null.
 */
export function documentSql(column: string, base: string): string {
  if (base === 'jsonb') return column;
  const text = `${column}::text`;
  const plain = `regexp_replace(${text}, ${ESCAPED_BACKSLASH}, 'x', 'g')`;
  return `case when octet_length(${text}) < ${SUSPECT_BYTES} and ${text} !~ ${SUSPECT} then ${column}::jsonb
    when regexp_replace(${plain}, ${SURROGATES}, 'x', 'g') !~ ${NO_TEXT}
      and regexp_replace(${plain}, ${JSON_TEXT}, '', 'g') !~ ${NO_NUMBER} then ${column}::jsonb end`;
}

/** The value at the end of a path, as jsonb. */
export const valueSql = (document: string, path: readonly string[]): string =>
  path.reduce((sql, key) => `(${sql} -> ${pg.escapeLiteral(key)})`, atom(document));

/** The same as text: of a text its characters, of all else JSON. */
export const textSql = (document: string, path: readonly string[]): string =>
  `(${valueSql(document, path.slice(0, -1))} ->> ${pg.escapeLiteral(path.at(-1) ?? '')})`;

const atom = (sql: string): string => (sql.startsWith('case') ? `(${sql})` : sql);

/** A document that has nothing but this in that place, for `@>`. */
export const nested = (path: Path['path'], json: string): string =>
  path.reduceRight((inner, key) => `{${JSON.stringify(key)}:${inner}}`, json);
