import type { Form } from './fields.ts';
import { documentSql, textSql, valueSql } from './json.ts';
import type { Column } from './table.ts';
import { fromDate, fromEpoch, fromIso, fromTimestamp, fromTimestamptz } from './times-sql.ts';

const TEXTS = ['text', 'varchar', 'bpchar', 'citext'];
const INTEGERS = ['int2', 'int4', 'int8'];
const NUMBERS = [...INTEGERS, 'float4', 'float8', 'numeric'];
const JSONS = ['json', 'jsonb'];

export const isJson = (base: string): base is 'json' | 'jsonb' => JSONS.includes(base);
export const isText = (base: string): boolean => TEXTS.includes(base);
export const isNumber = (base: string): boolean => NUMBERS.includes(base);
export const isInteger = (base: string): boolean => INTEGERS.includes(base);

/** Types that a column may have for a form, as operators are told. */
export const WANTED: Readonly<Record<Form, string>> = {
  text: 'text, varchar, uuid, a number or JSON',
  list: 'text[], varchar[], json or jsonb',
  number: 'a number, a text or JSON',
  time: 'timestamptz, timestamp, date, a number since 1970, a text in ISO 8601 or JSON',
  json: 'json or jsonb',
};

/**
 * A column by its bytes. Under a nondeterministic collation different texts can be equal, and most functions on patterns
 * raise an error.
 */
export const byBytes = (column: string, { deterministic }: Pick<Column, 'deterministic'>): string =>
  deterministic ? column : `(${column} collate "C")`;

/**
 * SQL of what a column holds, in a form of the wire; null for what cannot be read as that. Undefined: the type of the
 * column has nothing to do with it. `column` is SQL, `base` its type beneath domains.
 */
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
      if (base === 'float8') return share(column, column);
      // The digits that it shows, not those that it turns into.
      if (base === 'float4') return share(column, `${column}::text::float8`);
      if (isText(base)) return share(numberSql(`${column}::text`));
      return isNumber(base) ? share(column) : undefined;
    case 'time':
      return timeSql(column, base);
    case 'json':
      return undefined;
  }
}

/** The same of what lies at the end of a path in jsonb. */
export function jsonSql(form: Form, document: string, path: readonly string[]): string {
  const value = valueSql(document, path);
  const text = path.length > 0 ? textSql(document, path) : `(${value} #>> '{}')`;
  switch (form) {
    case 'text':
      return `case when jsonb_typeof(${value}) not in ('object', 'array') then ${text} end`;
    case 'list':
      return `case jsonb_typeof(${value})
        when 'array' then array(select e #>> '{}' from jsonb_array_elements(${value}) as e where jsonb_typeof(e) = 'string')
        when 'string' then array[${text}] end`;
    case 'number':
      return share(
        `case jsonb_typeof(${value}) when 'number' then ${text}::numeric when 'string' then ${numberSql(text)} end`,
      );
    case 'time':
      return `case jsonb_typeof(${value}) when 'string' then ${fromIso(text)} when 'number' then ${fromEpoch(`${text}::numeric`)} end`;
    case 'json':
      return `case when jsonb_typeof(${value}) = 'object' then ${value} end`;
  }
}

/** Only keys that are the caller's on the wire. */
export const extensionsSql = (object: string): string =>
  `(select jsonb_object_agg(key, value) from jsonb_each(${object}) where starts_with(key, 'x-'))`;

/** Of a text. What is longer is no confidence, and might not fit into the type. */
const numberSql = (text: string): string =>
  `substring(${text} from '^(-?[0-9]{1,9}(?:[.][0-9]{1,100})?(?:[eE][+-]?[0-9]{1,3})?)$')::numeric`;

/** What is too small for a double would be an error. */
const toDouble = (number: string): string => `case when (${number}) < 3e-324 then 0 else (${number})::float8 end`;
const share = (number: string, double = toDouble(number)): string =>
  `case when (${number}) between 0 and 1 then ${double} end`;

function timeSql(column: string, base: string): string | undefined {
  if (base === 'timestamptz') return fromTimestamptz(column);
  if (base === 'timestamp') return fromTimestamp(column);
  if (base === 'date') return fromDate(column);
  if (isText(base)) return fromIso(`${column}::text`);
  return isNumber(base) ? fromEpoch(column) : undefined;
}
