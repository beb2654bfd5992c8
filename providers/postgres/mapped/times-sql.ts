/** Bounds of what is a time here, in every session; both are null themselves. */
const BEFORE = `timestamptz '0001-01-01 00:00:00+00' - interval '1 microsecond'`;
const AFTER = `timestamptz '10000-01-01 00:00:00+00'`;

/** Years 1 to 9999; infinity and all else is null. The value is computed once. */
const within = (time: string): string =>
  `nullif(greatest(nullif(least(${time}, ${AFTER}), ${AFTER}), ${BEFORE}), ${BEFORE})`;

export const fromTimestamptz = (time: string): string => within(time);
export const fromTimestamp = (time: string): string => within(`(${time} at time zone 'UTC')`);
/** Dates reach further than timestamps: the cast has to be kept from them. */
export const fromDate = (date: string): string =>
  `case when ${date} between date '0001-01-01' and date '9999-12-31' then ${date}::timestamp at time zone 'UTC' end`;

/** Below, a number counts seconds (until the year 5138), else milliseconds (from March 1973). */
const SECONDS_BELOW = '100000000000';
/** Milliseconds beyond which Postgres knows no times, or we do not. */
const FIRST = '-62135596800000';
const LAST = '253402300799999';

/** Of seconds or milliseconds since 1970. Days and the rest apart: neither a double nor an interval loses anything then. */
export function fromEpoch(number: string): string {
  const exact = `${number}::numeric`;
  const ms = `floor(case when abs(${exact}) < ${SECONDS_BELOW} then ${exact} * 1000 else ${exact} end)`;
  const time = `(timestamp '1970-01-01' + make_interval(days => div(${ms}, 86400000)::int, secs => (mod(${ms}, 86400000) / 1000)::float8)) at time zone 'UTC'`;
  return `case when ${number} between ${FIRST} and ${LAST} then ${within(`(${time})`)} end`;
}

const LEAP = '0[48]|[2468][048]|[13579][26]';
const DATE = `(?:(?!0000)[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:${LEAP})|(?:${LEAP})00)-02-29)`;
const CLOCK = '[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,3})?)?';
/** Postgres knows no place further than that from Greenwich, and raises an error. */
const OFFSET = '(?:[Zz]| ?[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9]|:[0-5][0-9]:[0-5][0-9])?)';

/** How libraries write times, nearly always; of a shape that is told five times faster than all that is allowed. */
const USUAL =
  '[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?';

/**
 * Of a text in ISO 8601: a date, or a date and a time with or without an offset (UTC). Only what is told to be a time by
 * the patterns is ever cast, since a cast that fails fails the statement. More digits than Postgres keeps are cut off
 * first: it would round them.
 */
export function fromIso(text: string): string {
  const cut = `regexp_replace(btrim(${text}), '[.,]([0-9]{1,3})[0-9]*', ${String.raw`E'.\\1'`})`;
  return within(
    `case when ${text} ~ '^${USUAL}${OFFSET}$' then ${text}::timestamptz
      when ${text} ~ '^${USUAL}$' then ${text}::timestamp at time zone 'UTC'
      else coalesce(substring(${cut} from '^(${DATE}(?:${CLOCK})?)$')::timestamp at time zone 'UTC', substring(${cut} from '^(${DATE}${CLOCK}${OFFSET})$')::timestamptz) end`,
  );
}
