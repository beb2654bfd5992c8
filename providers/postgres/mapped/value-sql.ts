import pg from 'pg';
import type { Column } from './catalogue.ts';
import type { Form } from './field-mapping.ts';

/*
 * SQL that reads what another application wrote. The value comes in the form of the wire. It is null if the row holds none or
 * one that cannot be read in that form. No value makes a statement fail: one bad row would hide all others.
 */

const TEXTS = ['text', 'varchar', 'bpchar', 'citext'];
const INTEGERS = ['int2', 'int4', 'int8'];
const NUMBERS = [...INTEGERS, 'float4', 'float8', 'numeric'];
const JSONS = ['json', 'jsonb'];

export const isJson = (base: string): base is 'json' | 'jsonb' => JSONS.includes(base);
export const isText = (base: string): boolean => TEXTS.includes(base);
export const isNumber = (base: string): boolean => NUMBERS.includes(base);
export const isInteger = (base: string): boolean => INTEGERS.includes(base);

/** Column types that a form can be read from, for messages. */
export const READABLE_TYPES: Readonly<Record<Form, string>> = {
  text: 'text, varchar, uuid, a number or JSON',
  list: 'text[], varchar[], json or jsonb',
  number: 'a number, a text or JSON',
  time: 'timestamptz, timestamp, date, a number since 1970, a text in ISO 8601 or JSON',
  json: 'json or jsonb',
};

/**
 * A column compared by bytes. Under a nondeterministic collation different texts can be equal, and most functions on
 * patterns raise an error.
 */
export const byBytes = (column: string, { deterministic }: Pick<Column, 'deterministic'>): string =>
  deterministic ? column : `(${column} collate "C")`;

/** The value of a column. Undefined if no value of the column's type has that form. `base` is the type beneath domains. */
export function columnSql(form: Form, column: string, base: string): string | undefined {
  if (isJson(base)) return jsonSql(form, documentSql(column, base), []);
  switch (form) {
    case 'text':
      if (base === 'text' || base === 'varchar') return column;
      return isText(base) || isNumber(base) || base === 'uuid' ? `${column}::text` : undefined;
    case 'list':
      return ['_text', '_varchar'].includes(base)
        ? `case when array_ndims(${column}) = 1 then array_remove(${column}::text[], null) end`
        : undefined;
    case 'number':
      if (base === 'float8') return fractionSql(column, column);
      // By its shortest digits: 0.1 as float4 is 0.10000000149 as float8.
      if (base === 'float4') return fractionSql(column, `${column}::text::float8`);
      if (isText(base)) return fractionSql(numberSql(`${column}::text`));
      return isNumber(base) ? fractionSql(column) : undefined;
    case 'time':
      return columnTimeSql(column, base);
    case 'json':
      return undefined;
  }
}

/** The value at the end of a path in jsonb. */
export function jsonSql(form: Form, document: string, path: readonly string[]): string {
  const value = jsonAt(document, path);
  const text = path.length > 0 ? textAt(document, path) : `(${value} #>> '{}')`;
  switch (form) {
    case 'text':
      return `case when jsonb_typeof(${value}) not in ('object', 'array') then ${text} end`;
    case 'list':
      return `case jsonb_typeof(${value})
        when 'array' then array(select e #>> '{}' from jsonb_array_elements(${value}) as e where jsonb_typeof(e) = 'string')
        when 'string' then array[${text}] end`;
    case 'number':
      return fractionSql(
        `case jsonb_typeof(${value}) when 'number' then ${text}::numeric when 'string' then ${numberSql(text)} end`,
      );
    case 'time':
      return `case jsonb_typeof(${value}) when 'string' then ${isoTimeSql(text)} when 'number' then ${epochTimeSql(`${text}::numeric`)} end`;
    case 'json':
      return `case when jsonb_typeof(${value}) = 'object' then ${value} end`;
  }
}

/** Only the keys that callers may set. */
export const extensionsSql = (object: string): string =>
  `(select jsonb_object_agg(key, value) from jsonb_each(${object}) where starts_with(key, 'x-'))`;

// JSON

/** A backslash escape that text cannot hold, once escaped backslashes and surrogate pairs are removed. */
const INVALID_ESCAPE = pg.escapeLiteral(String.raw`\\u(?:0000|[dD][89a-fA-F])`);
const ESCAPED_BACKSLASH = pg.escapeLiteral(String.raw`\\\\`);
const SURROGATES = pg.escapeLiteral(String.raw`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`);
const JSON_TEXT = pg.escapeLiteral(String.raw`"(?:\\.|[^"\\])*"`);
/** More digits than `numeric` takes, with a margin. */
const HUGE_NUMBER = `'[eE][+-]?[0-9]{4}|(?:[0-9]{64}){64}'`;
const SUSPECT = pg.escapeLiteral(String.raw`\\u|[0-9][eE][+-]?[0-9]{4}`);
const SUSPECT_BYTES = 4_096;

/**
 * A column of JSON as jsonb. `json` accepts documents that jsonb rejects with an error, in `->` too: with NUL, half a
 * surrogate pair, or a huge number. Such a document reads as null.
 */
export function documentSql(column: string, base: string): string {
  if (base === 'jsonb') return column;
  const text = `${column}::text`;
  const plain = `regexp_replace(${text}, ${ESCAPED_BACKSLASH}, 'x', 'g')`;
  return `case when octet_length(${text}) < ${SUSPECT_BYTES} and ${text} !~ ${SUSPECT} then ${column}::jsonb
    when regexp_replace(${plain}, ${SURROGATES}, 'x', 'g') !~ ${INVALID_ESCAPE}
      and regexp_replace(${plain}, ${JSON_TEXT}, '', 'g') !~ ${HUGE_NUMBER} then ${column}::jsonb end`;
}

/** The value at the end of a path, as jsonb. */
export const jsonAt = (document: string, path: readonly string[]): string =>
  path.reduce(
    (sql, key) => `(${sql} -> ${pg.escapeLiteral(key)})`,
    document.startsWith('case') ? `(${document})` : document,
  );

/** The value at the end of a path, as text: the characters of a string, the JSON of anything else. */
export const textAt = (document: string, path: readonly string[]): string =>
  `(${jsonAt(document, path.slice(0, -1))} ->> ${pg.escapeLiteral(path.at(-1) ?? '')})`;

/** A document that contains only this value at the end of the path, for `@>`. */
export const documentWith = (path: readonly string[], json: string): string =>
  path.reduceRight((inner, key) => `{${JSON.stringify(key)}:${inner}}`, json);

// Numbers

/** Of a text. A longer number is no confidence and might not fit the type. */
const numberSql = (text: string): string =>
  `substring(${text} from '^(-?[0-9]{1,9}(?:[.][0-9]{1,100})?(?:[eE][+-]?[0-9]{1,3})?)$')::numeric`;

/** A number too small for a double would raise an error. */
const toDouble = (number: string): string => `case when (${number}) < 3e-324 then 0 else (${number})::float8 end`;
const fractionSql = (number: string, double = toDouble(number)): string =>
  `case when (${number}) between 0 and 1 then ${double} end`;

// Times

function columnTimeSql(column: string, base: string): string | undefined {
  if (base === 'timestamptz') return inYears(column);
  if (base === 'timestamp') return inYears(`(${column} at time zone 'UTC')`);
  // Dates reach further than timestamps: the cast must not see those.
  if (base === 'date')
    return `case when ${column} between date '0001-01-01' and date '9999-12-31' then ${column}::timestamp at time zone 'UTC' end`;
  if (isText(base)) return isoTimeSql(`${column}::text`);
  return isNumber(base) ? epochTimeSql(column) : undefined;
}

/** Exclusive bounds, independent of the session's time zone. */
const BEFORE = `timestamptz '0001-01-01 00:00:00+00' - interval '1 microsecond'`;
const AFTER = `timestamptz '10000-01-01 00:00:00+00'`;

/** Null outside the years 1 to 9999, infinity included. Evaluates `time` once. */
const inYears = (time: string): string =>
  `nullif(greatest(nullif(least(${time}, ${AFTER}), ${AFTER}), ${BEFORE}), ${BEFORE})`;

/** A smaller number counts seconds (until the year 5138), a larger one milliseconds (from March 1973). */
export const SECONDS_BELOW = '100000000000';
/** Milliseconds of the years 1 to 9999. */
const FIRST = '-62135596800000';
const LAST = '253402300799999';

/** Seconds or milliseconds since 1970. Adds days and the rest apart, so that neither a double nor an interval rounds. */
function epochTimeSql(number: string): string {
  const exact = `${number}::numeric`;
  const ms = `floor(case when abs(${exact}) < ${SECONDS_BELOW} then ${exact} * 1000 else ${exact} end)`;
  const time = `(timestamp '1970-01-01' + make_interval(days => div(${ms}, 86400000)::int, secs => (mod(${ms}, 86400000) / 1000)::float8)) at time zone 'UTC'`;
  return `case when ${number} between ${FIRST} and ${LAST} then ${inYears(`(${time})`)} end`;
}

const LEAP = '0[48]|[2468][048]|[13579][26]';
const DATE = `(?:(?!0000)[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:${LEAP})|(?:${LEAP})00)-02-29)`;
const CLOCK = '[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,3})?)?';
/** Postgres raises an error for offsets of 16 hours and more. */
const OFFSET = '(?:[Zz]| ?[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9]|:[0-5][0-9]:[0-5][0-9])?)';

/** The form that nearly all libraries write. It matches five times faster than the general pattern. */
const USUAL =
  '[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?';

/**
 * A text in ISO 8601: a date, or a date and a time with or without an offset (UTC). Only what the patterns match is cast,
 * since a failing cast fails the statement. Digits beyond milliseconds are cut first: Postgres would round them.
 */
function isoTimeSql(text: string): string {
  const cut = `regexp_replace(btrim(${text}), '[.,]([0-9]{1,3})[0-9]*', ${String.raw`E'.\\1'`})`;
  return inYears(
    `case when ${text} ~ '^${USUAL}${OFFSET}$' then ${text}::timestamptz
      when ${text} ~ '^${USUAL}$' then ${text}::timestamp at time zone 'UTC'
      else coalesce(substring(${cut} from '^(${DATE}(?:${CLOCK})?)$')::timestamp at time zone 'UTC', substring(${cut} from '^(${DATE}${CLOCK}${OFFSET})$')::timestamptz) end`,
  );
}
