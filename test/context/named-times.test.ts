import fc from 'fast-check';
import { expect, it } from 'vitest';
import { timesNamed } from '../../src/context/named-times.ts';

/** A Thursday. */
const NOW = new Date('2024-08-15T12:00:00.000Z');
const day = (time: number) => new Date(time).toISOString().slice(0, 10);
const named = (text: string) => timesNamed(text, NOW).map(({ from, to }) => `${day(from)} ${day(to)}`);

it.each([
  ['on 2023-05-07', '2023-05-07 2023-05-08'],
  ['in 2023-05', '2023-05-01 2023-06-01'],
  ['on 7 May 2023', '2023-05-07 2023-05-08'],
  ['the 7th of september', '2023-09-07 2023-09-08'],
  ['May 7th, 2023', '2023-05-07 2023-05-08'],
  ['on Jan. 2', '2024-01-02 2024-01-03'],
  ['the end of January 2024', '2024-01-01 2024-02-01'],
  ['since May', '2024-05-01 2024-06-01'],
  ['What happened in September?', '2023-09-01 2023-10-01'],
  ['fall 2023', '2023-09-01 2023-12-01'],
  ['winter of 2023', '2023-12-01 2024-03-01'],
  ['in 2023', '2023-01-01 2024-01-01'],
  ['this morning', '2024-08-15 2024-08-16'],
  ['last night', '2024-08-14 2024-08-15'],
  ['3 days ago', '2024-08-12 2024-08-13'],
  ['two weeks ago', '2024-07-29 2024-08-05'],
  ['a month ago', '2024-07-01 2024-08-01'],
  ['last week', '2024-08-05 2024-08-12'],
  ['last weekend', '2024-08-10 2024-08-12'],
  ['THIS MONTH', '2024-08-01 2024-09-01'],
  ['last year', '2023-01-01 2024-01-01'],
  ['last Thursday', '2024-08-08 2024-08-09'],
  ['last Friday', '2024-08-09 2024-08-10'],
  ['29 February', '2024-02-29 2024-03-01'],
  ['the day before yesterday', '2024-08-13 2024-08-14'],
  ['the week before last', '2024-07-29 2024-08-05'],
  ['the week before last week', '2024-07-29 2024-08-05'],
  ['What did I eat on Monday?', '2024-08-12 2024-08-13'],
  ['what was said on Friday evening', '2024-08-09 2024-08-10'],
  ['What happened on Monday last week?', '2024-08-05 2024-08-12'],
  ['What did I eat on Monday two weeks ago?', '2024-07-29 2024-08-05'],
  ['last summer', '2023-06-01 2023-09-01'],
  ['Last spring', '2024-03-01 2024-06-01'],
  ['last winter', '2023-12-01 2024-03-01'],
  ['last fall', '2023-09-01 2023-12-01'],
  ['a couple of weeks ago', '2024-07-22 2024-08-05'],
  ['a few days ago', '2024-08-10 2024-08-14'],
  ['a couple months ago', '2024-05-01 2024-07-01'],
])('[Decision 10] "%s" names a time', (text, expected) => {
  expect(named(text)).toEqual([expected]);
});

it('[Decision 10] several times are all named', () => {
  expect(named('Was it in May 2023 or two weeks ago?')).toEqual(['2023-05-01 2023-06-01', '2024-07-29 2024-08-05']);
});

it.each([
  'May I use Redis?',
  'this may be a problem, 12 may have left',
  'I may 10 percent, march 10 km to town',
  'a model of 2000 parts',
  'where may he march?',
  'decided 5 tasks',
  'Marina 2023',
  'octopus 12',
  '31 February 2023',
  '2023-13-01',
  'room 2024',
  'last monthly report',
  'im Mai letzten Jahres',
  'what was done before yesterday',
  'What do I do on Monday?',
  'What was it that we will do on Monday?',
  'What was said on Thursday?',
  'Why did she not train on Mondays?',
  'What did she do on Friday evenings?',
  'the last spring of the clock',
  'his last fall',
])('[Decision 10] "%s" names none', (text) => {
  expect(named(text)).toEqual([]);
});

it('[Decision 10] any text is read, and each time has a beginning and a later end', () => {
  const words = fc.constantFrom(
    'in',
    'May',
    '31',
    '2023',
    'last',
    'on Monday',
    'did',
    'the day before yesterday',
    'summer',
    'a couple of',
    'week',
    '99',
    '999',
    'years',
    'ago',
    '2023-02',
    '-30',
    'a',
  );
  const texts = fc.oneof(
    fc.string(),
    fc.array(words).map((parts) => parts.join(' ')),
  );
  fc.assert(
    fc.property(texts, (text) => timesNamed(text, NOW).every(({ from, to }) => to > from)),
    { numRuns: 2_000 },
  );
});
