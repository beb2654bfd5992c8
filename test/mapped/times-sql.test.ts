import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { columnSql } from '../../providers/postgres/mapped/value-sql.ts';
import { openStore, type TestDatabase } from '../postgres/store.ts';

/** Time zones far from UTC, with summer time, and other styles of dates. */
const SESSIONS = [
  `set local timezone = 'UTC'`,
  `set local timezone = 'America/New_York'; set local datestyle = 'German, DMY'; set local intervalstyle = 'sql_standard'`,
  `set local timezone = 'Pacific/Chatham'; set local datestyle = 'SQL, MDY'`,
];

const FIRST = Date.parse('0001-01-01T00:00:00Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');

/** Epoch milliseconds, if they name a time that a memory can have. */
const known = (milliseconds: number): number | null =>
  milliseconds >= FIRST && milliseconds <= LAST ? Math.floor(milliseconds) : null;

describe('times as SQL', () => {
  let store: TestDatabase;
  beforeAll(async () => {
    store = await openStore();
  });
  afterAll(() => store.close());

  /** What SQL makes of each value, in epoch milliseconds, in every kind of session. */
  async function read(type: string, values: readonly unknown[]) {
    const answers: (readonly (number | null)[])[] = [];
    for (const session of SESSIONS) {
      await store.sql('begin');
      try {
        await store.sql(session);
        const rows = await store.sql<{ ms: number | null }>(
          `select date_part('epoch', date_trunc('milliseconds', ${columnSql('time', 'value', type)})) * 1000 as ms
             from unnest($1::${type}[]) with ordinality as u(value, place) order by place`,
          [values],
        );
        answers.push(rows.map(({ ms }) => (ms === null ? null : Math.round(ms))));
      } finally {
        await store.sql('rollback');
      }
    }
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    return answers[0] ?? [];
  }

  const part = (from: number, to: number, width = 2) =>
    fc.integer({ min: from, max: to }).map((number) => String(number).padStart(width, '0'));
  const offset = fc.oneof(
    fc.constantFrom('', 'Z', 'z'),
    fc
      .tuple(fc.constantFrom('+', '-', ' +'), part(0, 16), fc.constantFrom('', ':', 'none'), part(0, 61))
      .map(([sign, hours, colon, minutes]) => sign + hours + (colon === 'none' ? '' : colon + minutes)),
  );
  /** Texts that look like times; a good part of them names a day or an hour that does not exist. */
  const looksLikeTime = fc.record({
    year: fc.oneof(
      part(0, 9999, 4),
      part(1000, 2999, 4),
      fc.constantFrom('0000', '0001', '1900', '2000', '2024', '9999'),
    ),
    month: fc.oneof({ weight: 9, arbitrary: part(1, 12) }, { weight: 1, arbitrary: part(0, 13) }),
    day: fc.oneof({ weight: 5, arbitrary: part(1, 28) }, { weight: 5, arbitrary: part(28, 32) }),
    clock: fc.option(
      fc.record({
        separator: fc.constantFrom('T', 't', ' '),
        hours: fc.oneof({ weight: 9, arbitrary: part(0, 23) }, { weight: 1, arbitrary: part(23, 25) }),
        minutes: fc.oneof({ weight: 9, arbitrary: part(0, 59) }, { weight: 1, arbitrary: part(59, 61) }),
        seconds: fc.option(fc.oneof({ weight: 9, arbitrary: part(0, 59) }, { weight: 1, arbitrary: part(59, 61) })),
        fraction: fc.option(
          fc
            .tuple(fc.constantFrom('.', ','), fc.stringMatching(/^[0-9]{1,9}$|^[0-9]{150}$/))
            .map((both) => both.join('')),
        ),
        offset,
      }),
    ),
  });
  type Parts = typeof looksLikeTime extends fc.Arbitrary<infer Value> ? Value : never;

  const toText = ({ year, month, day, clock }: Parts) =>
    `${year}-${month}-${day}` +
    (clock
      ? `${clock.separator}${clock.hours}:${clock.minutes}${clock.seconds === null ? '' : `:${clock.seconds}${clock.fraction ?? ''}`}${clock.offset}`
      : '');

  /** By the calendar of JavaScript. */
  function expected({ year, month, day, clock }: Parts): number | null {
    const { hours = '00', minutes = '00', seconds, fraction, offset: written = '' } = clock ?? {};
    const date = new Date(0);
    date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
    const exists = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day) && year !== '0000';
    if (!exists || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds ?? 0) > 59) return null;
    const [, sign, ahead = '0', more = '0'] = /([+-])(\d\d):?(\d\d)?$/.exec(written) ?? [];
    if (Number(ahead) > 15 || Number(more) > 59) return null;
    const cut = seconds === null ? '' : (fraction ?? '').slice(1, 4);
    date.setUTCHours(Number(hours), Number(minutes), Number(seconds ?? 0), Number(cut.padEnd(3, '0')));
    const minutesAhead = (Number(ahead) * 60 + Number(more)) * (sign === '-' ? -1 : 1);
    return known(date.getTime() - minutesAhead * 60_000);
  }

  it('read texts in ISO 8601 as JavaScript does, in every session', async () => {
    const samples = fc.sample(looksLikeTime, 2_000);
    const texts = samples.map(toText);
    const answers = await read('text', texts);
    const wanted = samples.map(expected);
    expect(Object.fromEntries(texts.map((text, place) => [text, answers[place]]))).toEqual(
      Object.fromEntries(texts.map((text, place) => [text, wanted[place]])),
    );
    // The samples are no good unless both kinds are among them.
    expect(wanted.filter((time) => time === null).length).toBeGreaterThan(150);
    expect(wanted.filter((time) => time !== null).length).toBeGreaterThan(150);
  });

  it.each([
    ['2025-03-01T16:30:15.123Z', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01T08:30:15.123999999-08:00', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01 17:30:15,5 +0100', '2025-03-01T16:30:15.500Z'],
    ['1899-12-31 23:59:59+05:53:28', '1899-12-31T18:06:31.000Z'],
    ['2025-03-01T16:30:15', '2025-03-01T16:30:15.000Z'],
    ['2025-03-30 02:30', '2025-03-30T02:30:00.000Z'],
    [' 2025-03-01\n', null],
    [' 2025-03-01 ', '2025-03-01T00:00:00.000Z'],
    ['1900-02-29', null],
    ['2025-02-31', null],
    ['2025-03-01T24:61', null],
    ['2025-03-01T10:00:60Z', null],
    ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59-01:00', null],
    ['0001-01-01T00:00:00+01:00', null],
    ['0000-12-31', null],
    ['10000-01-01', null],
    ['-0001-01-01', null],
    ['2025-03-01 BC', null],
    ['٢٠٢٥-٠٣-٠١', null],
    ['infinity', null],
    ['now', null],
    ['epoch', null],
    ['1740846615', null],
    ['2025', null],
    ['2025-W09-6', null],
    ['01.03.2025', null],
    ['March 1, 2025', null],
    ['', null],
  ])('read %j as %s', async (text, iso) => {
    expect(await read('text', [text])).toEqual([iso === null ? null : Date.parse(iso)]);
  });

  it('fail on no text', async () => {
    const almost = looksLikeTime.chain((parts) =>
      fc.tuple(fc.nat(30), fc.string({ unit: 'binary', maxLength: 3 })).map(([at, noise]) => {
        const text = toText(parts);
        return text.slice(0, at) + noise + text.slice(at + noise.length);
      }),
    );
    const texts = fc
      .sample(fc.oneof(almost, fc.string({ unit: 'binary' }), fc.stringMatching(/^[-+:.,TZ 0-9]{0,40}$/)), 1_500)
      .map((text) => text.replaceAll('\0', '').toWellFormed());
    expect(await read('text', texts)).toHaveLength(texts.length);
  });

  const epochOf = (number: number) =>
    Number.isFinite(number) ? known(Math.abs(number) < 1e11 ? Math.floor(number * 1_000) : number) : null;

  it('read numbers as seconds or milliseconds since 1970', async () => {
    // Whole milliseconds, so that JavaScript's own arithmetic is exact.
    const seconds = fc.integer({ min: -99_999_999_999, max: 99_999_999_999 });
    const numbers = fc.sample(
      fc.oneof(
        seconds,
        seconds.map((whole) => Math.trunc(whole / 1_000) + 0.5),
        fc.integer({ min: FIRST - 10, max: LAST + 10 }),
        fc.maxSafeInteger(),
        fc.constantFrom(0, 1e11, -1e11, 99_999_999_999, FIRST, FIRST - 1, LAST, LAST + 1),
      ),
      2_000,
    );
    const whole = numbers.filter(Number.isInteger);
    expect(await read('int8', whole)).toEqual(whole.map(epochOf));
    expect(await read('numeric', numbers)).toEqual(numbers.map(epochOf));
    const odd = [...numbers, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e300, -1e300, 1e-300];
    expect(await read('float8', odd)).toEqual(odd.map(epochOf));
    expect(await read('numeric', ['NaN', '1e400', '-1e400', '1e-400', '1700000000.9999'])).toEqual([
      null,
      null,
      null,
      0,
      1_700_000_000_999,
    ]);
  });

  it('read columns of times, in UTC where they have no zone', async () => {
    const far = ['infinity', '-infinity', '0001-12-31 BC', '20000-01-01'];
    const none = [null, null, null, null];
    const at = (iso: string) => Date.parse(iso);
    expect(await read('timestamptz', ['2025-03-01 12:00:00.5+02', ...far])).toEqual([
      at('2025-03-01T10:00:00.500Z'),
      ...none,
    ]);
    expect(await read('timestamp', ['2025-07-01 12:00:00.123999', ...far])).toEqual([
      at('2025-07-01T12:00:00.123Z'),
      ...none,
    ]);
    expect(await read('date', ['2025-07-01', '0001-01-01', '9999-12-31', '5000000-01-01', ...far])).toEqual([
      at('2025-07-01T00:00:00Z'),
      FIRST,
      at('9999-12-31T00:00:00Z'),
      null,
      ...none,
    ]);
  });
});
