import { isStorableTime } from './records.ts';

/*
 * Times that other applications write.
 */

/** Smaller numbers are seconds since 1970, others milliseconds. In seconds this is the year 5138. */
const FIRST_MILLISECONDS = 1e11;

/** Date, hours and minutes, seconds, fraction, offset; `T` may be a space, as Python prints times. */
const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)? ?(?:(Z)|([+-]\d\d):?(\d\d)?)?)?$/i;

/** No time is longer. */
const MAX_LENGTH = 100;

/**
 * The time that a value names, as ISO 8601 in UTC with milliseconds. Takes numbers, and ISO 8601 dates and times, in UTC
 * unless they have an offset. Undefined for everything else and outside of the years 1 to 9999.
 */
export function toTime(value: unknown): string | undefined {
  const milliseconds = typeof value === 'number' ? fromNumber(value) : fromText(value);
  return isStorableTime(milliseconds) ? new Date(milliseconds).toISOString() : undefined;
}

const isSeconds = (value: number): boolean => Math.abs(value) < FIRST_MILLISECONDS;
const fromNumber = (value: number): number => Math.round(isSeconds(value) ? value * 1_000 : value);

function fromText(value: unknown): number {
  const parts = typeof value === 'string' && value.length <= MAX_LENGTH ? ISO.exec(value.trim()) : null;
  if (!parts) return Number.NaN;
  const [, date, minutes = '00:00', seconds = '00', fraction = '', , hours, rest = '00'] = parts;
  const offset = hours === undefined ? 'Z' : `${hours}:${rest}`;
  // JavaScript reads other forms, and times without an offset, in the time zone of the machine.
  return Date.parse(`${date}T${minutes}:${seconds}.${fraction.padEnd(3, '0').slice(0, 3)}${offset}`);
}

/** A time in the form that another one has: a number in its unit, else ISO 8601. */
export function timeLike(other: unknown, iso: string): string | number {
  if (typeof other !== 'number') return iso;
  const milliseconds = Date.parse(iso);
  return isSeconds(other) ? milliseconds / 1_000 : milliseconds;
}
