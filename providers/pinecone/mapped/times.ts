import type { MetadataValue } from '../client/client.ts';

/** Numbers below are seconds since 1970, those from here on milliseconds: as seconds this were the year 5138. */
const FIRST_MILLISECONDS = 1e11;

/** Date, hours and minutes, seconds, their fraction, offset; `T` may be a space, as Python prints times. */
const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)? ?(?:(Z)|([+-]\d\d):?(\d\d)?)?)?$/i;

const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z');
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * The moment a value names, as ISO 8601 in UTC with milliseconds: a number, or an ISO 8601 date or date-time, in UTC
 * where it has no offset. Undefined for everything else and outside of the years 1 to 9999.
 */
export function toIso(value: MetadataValue | undefined): string | undefined {
  const milliseconds = typeof value === 'number' ? fromNumber(value) : fromText(value);
  const named = milliseconds >= FIRST_MOMENT && milliseconds <= LAST_MOMENT;
  return named ? new Date(milliseconds).toISOString() : undefined;
}

const isSeconds = (value: number): boolean => Math.abs(value) < FIRST_MILLISECONDS;
const fromNumber = (value: number): number => Math.round(isSeconds(value) ? value * 1_000 : value);

function fromText(value: unknown): number {
  const parts = typeof value === 'string' ? ISO.exec(value.trim()) : null;
  if (!parts) return Number.NaN;
  const [, date, minutes = '00:00', seconds = '00', fraction = '', , hours, rest = '00'] = parts;
  const offset = hours === undefined ? 'Z' : `${hours}:${rest}`;
  // Other forms, and times without an offset, JavaScript reads in the time zone of this machine.
  return Date.parse(`${date}T${minutes}:${seconds}.${fraction.padEnd(3, '0').slice(0, 3)}${offset}`);
}

/** A moment in the form that another value of the same record has. */
export function inFormOf(other: MetadataValue | undefined, iso: string): MetadataValue {
  if (typeof other !== 'number') return iso;
  const milliseconds = Date.parse(iso);
  return isSeconds(other) ? milliseconds / 1_000 : milliseconds;
}
