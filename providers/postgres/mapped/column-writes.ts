import pg from 'pg';
import type { FieldName, Form } from './fields.ts';
import type { Write } from './layout.ts';
import { isInteger, isJson, isText } from './reads.ts';
import type { Column } from './table.ts';

/** How numbers since 1970 are meant in a column. */
export type Unit = 'seconds' | 'milliseconds';

/**
 * How a field is written into a column; undefined where it cannot be: the database computes it, or it could not be read
 * back as it was given. Times of creation and change may lose their fraction or hour to the type, since nobody gives
 * them. Casts are to types without a length, for one with a length would cut a text.
 */
export function columnWrite(field: FieldName, form: Form, column: Column, unit: Unit): Write | undefined {
  const given = field !== 'created_at' && field !== 'updated_at';
  const from = column.generated ? undefined : conversion(form, column.base, { unit, given });
  return from && { kind: 'column', column: pg.escapeIdentifier(column.name), from, notNull: column.notNull };
}

type Conversion = ((parameter: string) => string) | undefined;

interface Times {
  readonly unit: Unit;
  /** Whether clients say the time, and so have to get it back. */
  readonly given: boolean;
}

function conversion(form: Form, base: string, times: Times): Conversion {
  if (isJson(base)) return (parameter) => jsonOf(form, base, parameter);
  switch (form) {
    case 'text':
      return (parameter) => `${parameter}::${isText(base) ? 'text' : base}`;
    case 'list':
      return (parameter) => `${parameter}::text[]`;
    case 'number':
      if (isInteger(base)) return undefined;
      // A numeric takes more digits of the text than of a double.
      return (parameter) =>
        base === 'numeric' ? `${parameter}::numeric` : `${parameter}::float8${isText(base) ? '::text' : ''}`;
    case 'time':
      return timeConversion(base, times);
    case 'json':
      return undefined;
  }
}

function jsonOf(form: Form, base: 'json' | 'jsonb', parameter: string): string {
  if (form === 'json') return `${parameter}::${base}`;
  const type = { text: 'text', list: 'text[]', number: 'float8', time: 'text' }[form];
  return `to_${base}(${parameter}::${type})`;
}

function timeConversion(base: string, { unit, given }: Times): Conversion {
  if (isText(base)) return (parameter) => `${parameter}::text`;
  if (base === 'timestamptz') return (parameter) => `${parameter}::timestamptz`;
  if (base === 'timestamp') return (parameter) => `(${parameter}::timestamptz at time zone 'UTC')`;
  if (base === 'date') return given ? undefined : (parameter) => `(${parameter}::timestamptz at time zone 'UTC')::date`;
  const milliseconds = (parameter: string) => `round(date_part('epoch', ${parameter}::timestamptz) * 1000)`;
  if (unit === 'milliseconds') return (parameter) => `${milliseconds(parameter)}::${base}`;
  if (!isInteger(base)) return (parameter) => `(${milliseconds(parameter)}::numeric / 1000)::${base}`;
  return given ? undefined : (parameter) => `floor(${milliseconds(parameter)} / 1000)::${base}`;
}
