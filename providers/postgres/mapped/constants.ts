import pg from 'pg';
import type { Form } from './fields.ts';
import type { Field } from './layout.ts';

/**
 * What a field is in every row; undefined: the text is no such value. Lists and objects are told in JSON, as the
 * constant itself is.
 */
export function constantField(form: Form, text: string): Field | undefined {
  const value = parsed(form, text);
  if (value === undefined) return undefined;
  const literal = pg.escapeLiteral(value);
  const read =
    form === 'list' ? `array(select jsonb_array_elements_text(${literal}::jsonb))` : `${literal}::${TYPES[form]}`;
  return { read, write: undefined, constant: value };
}

/** What a constant has to be for a form, as operators are told. */
export const CONSTANTS: Readonly<Record<Form, string>> = {
  text: 'a text',
  list: `a list in JSON such as '["notes"]'`,
  number: `a number from 0 to 1 such as '0.5'`,
  time: `a time such as '2026-01-31T12:00:00Z'`,
  json: `an object in JSON such as '{"app":"notes"}'`,
};

const TYPES = { text: 'text', number: 'float8', time: 'timestamptz', json: 'jsonb' } as const;

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

const isoOf = (text: string): string | undefined => {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
};

function parsed(form: Form, text: string): string | undefined {
  if (form === 'text') return text === '' ? undefined : text;
  if (form === 'number') return /^(?:0|1|0?\.\d+)$/.test(text) ? String(Number(text)) : undefined;
  if (form === 'time') {
    const day = text.slice(0, 'yyyy-mm-dd'.length);
    // JavaScript takes the 31st of February for a day in March.
    const exists = TIME.test(text) && isoOf(day)?.startsWith(day);
    return exists ? isoOf(text) : undefined;
  }
  try {
    const value: unknown = JSON.parse(text);
    const fits =
      form === 'list'
        ? Array.isArray(value) && value.every((item) => typeof item === 'string')
        : typeof value === 'object' && value !== null && !Array.isArray(value);
    return fits ? JSON.stringify(value) : undefined;
  } catch {
    return undefined;
  }
}
