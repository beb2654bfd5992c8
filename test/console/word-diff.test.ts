import { describe, expect, it } from 'vitest';
import { type Run, wordDiff } from '../../console/src/word-diff.ts';

const LETTERS = { same: '', removed: '-', added: '+' };
const shown = (parts: readonly Run[]) => parts.map(({ kind, text }) => `${LETTERS[kind]}[${text}]`).join('');
const textOf = (parts: readonly Run[], without: Run['kind']) =>
  parts
    .filter(({ kind }) => kind !== without)
    .map(({ text }) => text)
    .join('');

describe('the difference of two texts, word by word', () => {
  it.each([
    ['tea', 'tea', '[tea]'],
    ['', 'tea', '-[]+[tea]'],
    ['drinks green tea daily', 'drinks black tea daily', '[drinks ]-[green]+[black][ tea daily]'],
    ['drinks tea', 'drinks tea, and milk', '[drinks tea]+[, and milk]'],
    // One change, not two with the space between them.
    [
      'works in Berlin now, as before',
      'works from New York, as before',
      '[works ]-[in Berlin now]+[from New York][, as before]',
    ],
    [
      'send bills to ana',
      'forward everything at once please',
      '-[send bills to ana]+[forward everything at once please]',
    ],
    ['他喜欢喝绿茶和咖啡', '他喜欢喝红茶和咖啡', '[他喜欢喝]-[绿茶]+[红茶][和咖啡]'],
    ['שותה תה ירוק', 'שותה תה שחור', '[שותה תה ]-[ירוק]+[שחור]'],
  ])('%j to %j', (before, after, expected) => {
    expect(shown(wordDiff(before, after))).toBe(expected);
  });

  it('has both texts in it, whatever they are', () => {
    let seed = 1;
    const below = (limit: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % limit;
    };
    const words = ['a', 'b', ' ', ' ', '. ', '\n', '👩‍👩‍👧', 'ß'];
    const text = () => Array.from({ length: below(30) }, () => words[below(words.length)]).join('');
    for (let n = 0; n < 2_000; n++) {
      const [before, after] = [text(), text()];
      const parts = wordDiff(before, after);
      expect([textOf(parts, 'added'), textOf(parts, 'removed')]).toEqual([before, after]);
    }
  });

  it('compares no texts that are long or differ everywhere', () => {
    const long = 'tea '.repeat(12_501);
    const many = (first: string) => Array.from({ length: 2_100 }, (_, n) => `${first}${n % 7}`).join(' ');
    for (const [before, after] of [
      [long, `${long}!`],
      [many('a'), many('b')],
    ] as const) {
      expect(wordDiff(before, after)).toEqual([
        { kind: 'removed', text: before },
        { kind: 'added', text: after },
      ]);
    }
  });
});
