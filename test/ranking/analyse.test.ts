import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { analyse, analyseLater, BASE_FORMS, matchedTerms, queryTerms, STOP_WORDS, withFewMarks } from '#ranking';
import { callOf } from '../embedding/observed-embedder.ts';
import { costOf } from '../support/hold.ts';
import { callBy } from '../support/requests.ts';

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  ['nothing', '', []],
  ['blanks', ' \t\n\u3000', []],
  ['punctuation alone', "- / ' ’s . … ¿?", []],
  ['plain words', 'Prefers green tea', ['prefer', 'green', 'tea']],
  ['a word once, where it first appears', 'tea green tea Tea TEAS', ['tea', 'green']],
  ['stop words', 'what is it that you would have done', ['done']],
  ['contractions of stop words', "don't can’t won't it's I'm", []],
  ['possessives', "Anna's dog, Anna’s cat, the dogs' bowls", ['anna', 'dog', 'cat', 'bowl']],
  ['an apostrophe inside a name', "O'Brien o’brien obrien", ['obrien']],
  ['regular forms', 'walks walked walking', ['walk']],
  ['irregular forms', 'she ran, has run, runs and was running', ['run']],
  ['irregular plurals', "children's feet, child foot", ['child', 'foot']],
  ['an irregular form and its base', 'went gone goes going', ['go']],
  ['forms that are more often another word', 'left saw', ['left', 'saw']],
  ['short words unstemmed', 'us ss gas', ['ss', 'ga']],
  ['accents, composed or not', 'café CAFÉ cafe\u0301 cafe', ['cafe']],
  ['accents inside', 'naïve façade Zürich', ['naiv', 'facad', 'zurich']],
  ['Turkish capitals', 'İstanbul istanbul', ['istanbul']],
  ['width and ligatures', 'Ｆｕｌｌ ｗｉｄｔｈ ﬁne', ['full', 'width', 'fine']],
  ['a code with a hyphen', 'XK-4471', ['xk', '4471', 'xk4471']],
  ['a code without its hyphen', 'xk4471', ['xk4471']],
  ['a code with slashes and hyphens', 'xk-4471/b2', ['xk', '4471', 'b2', 'xk4471b2']],
  ['a date', '2024-01-15', ['2024', '01', '15', '20240115']],
  ['joined words that are no code', 'well-known read/write', ['well', 'know', 'read', 'write']],
  ['thousands', '1,500 and 12,345,678', ['1500', '12345678']],
  ['commas that are not thousands', '1,50 1,5000', ['1', '50', '5000']],
  ['ordinals', '1st 2ND 23rd 11th', ['1', '2', '23', '11']],
  ['what only looks like an ordinal', '3rdx thirst', ['3rdx', 'thirst']],
  ['decimals', '3.14', ['3', '14']],
  ['other digits', '²³ ½', ['23', '1', '2']],
  ['Chinese', '我喜欢茶', ['我', '喜', '我喜', '欢', '喜欢', '茶', '欢茶']],
  ['Japanese with a long vowel', 'コーヒー', ['コ', 'ー', 'コー', 'ヒ', 'ーヒ', 'ヒー']],
  ['a single character', '茶', ['茶']],
  ['Japanese after Latin letters', 'Python入門', ['python', '入', '門', '入門']],
  ['Thai', 'กข', ['ก', 'ข', 'กข']],
  ['Korean, which has spaces', '한국어 텍스트', ['한국어', '텍스트']],
  ['Cyrillic, unstemmed', 'Кошка КОШКИ', ['кошка', 'кошки']],
  ['Devanagari with its marks', 'हिन्दी', ['हिन्दी']],
  ['emoji', '😀 tea 👨‍👩‍👧 🇩🇪', ['tea']],
  ['an address', 'mail foo.bar@example.com', ['mail', 'foo', 'bar', 'exampl', 'com']],
  ['an identifier', 'snake_case camelCase', ['snake', 'case', 'camelcas']],
];

describe('analyse', () => {
  it.each(CASES)('%s: %j', (_, text, terms) => {
    expect(analyse(text)).toEqual(terms);
  });

  it('keeps the start of a very long word', () => {
    expect(analyse('x'.repeat(64))).toEqual(['x'.repeat(64)]);
    expect(analyse(`${'x'.repeat(64)}y`)).toEqual(['x'.repeat(64)]);
    expect(analyse(`${'9-'.repeat(100)}9`)).toEqual(['9', '9'.repeat(64)]);
  });

  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc
      .array(fc.constantFrom('tea', 'Café', "Anna's", 'XK-4471', '1,500', '23rd', '東京', 'went', 'the', '-', '’', ','))
      .map((words) => words.join(' ')),
  );

  it('gives distinct, non-empty terms of at most 64 characters', () => {
    fc.assert(
      fc.property(text, (any) => {
        const terms = analyse(any);
        expect(new Set(terms).size).toBe(terms.length);
        for (const term of terms) {
          expect(term.length).toBeGreaterThan(0);
          expect(term.length).toBeLessThanOrEqual(64);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('reads all words of a symbol that stands for a phrase', () => {
    expect(analyse('\ufdfa')).toEqual(['صلى', 'الله', 'عليه', 'وسلم']);
  });

  it('of two separated texts is the union of both', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(new Set(analyse(`${one}\n${other}`))).toEqual(new Set([...analyse(one), ...analyse(other)]));
      }),
      { numRuns: 500 },
    );
  });

  it('does not depend on case, on how accents are encoded, or on width', () => {
    const letters = fc.string({ unit: fc.constantFrom(..."abcéèüñÅ 0189-/,'’"), maxLength: 30 });
    fc.assert(
      fc.property(letters, (any) => {
        const terms = analyse(any);
        expect(analyse(any.toUpperCase())).toEqual(terms);
        expect(analyse(any.normalize('NFD'))).toEqual(terms);
        expect(
          analyse(any.replace(/[a-c]/g, (c) => String.fromCodePoint((c.codePointAt(0) as number) + 0xfee0))),
        ).toEqual(terms);
      }),
      { numRuns: 500 },
    );
  });

  it('gives every irregular form the term of its base', () => {
    for (const [form, base] of BASE_FORMS) expect(analyse(form), form).toEqual(analyse(base));
    expect(BASE_FORMS.size).toBeGreaterThan(100);
  });

  it('drops every stop word, and none is an irregular form', () => {
    for (const word of STOP_WORDS) {
      expect(BASE_FORMS.has(word), word).toBe(false);
      expect(analyse(word), word).toEqual([]);
    }
  });
});

describe('matched terms', () => {
  const MATCHED: readonly (readonly [query: string, content: string, matched: readonly string[]])[] = [
    ['What COFFEES did she drink?', 'drinks coffee', ['COFFEES', 'drink']],
    ['coffee', 'tea', []],
    ['the and of', 'the and of', []],
    ['tea, (TEA) teas', 'green tea', ['tea']],
    ['“café” Anna’s ¿ran?', 'Anna runs a cafe', ['café', 'Anna’s', 'ran']],
    ['read/write 1,500', 'write 1500', ['write', '1,500']],
    ['XK-4471', 'xk4471', ['xk4471']],
    ['緑茶が', '緑茶です', ['緑', '茶', '緑茶']],
    ['x!!!b (b)!', 'b', ['b']],
    [`${' '.repeat(4_100)}tea`, 'tea', []],
  ];

  it.each(MATCHED)('[Decision 39] of %j in %j: %j', async (query, content, matched) => {
    expect(await matchedTerms(query, [content], callBy())).toEqual([matched]);
  });

  it('[Decision 39] are the same in contents that are analysed in a worker thread', async () => {
    const contents = ['green tea', `${'x '.repeat(3_000)}tea`, 'green', 'coffee'];
    expect(await matchedTerms('Green TEA', contents, callBy())).toEqual([['Green', 'TEA'], ['TEA'], ['Green'], []]);
    const aborted = callOf(AbortSignal.abort(new Error('aborted')));
    await expect(matchedTerms('tea', contents, aborted)).rejects.toThrow('aborted');
    expect(await matchedTerms('tea', contents.slice(0, 1), aborted)).toEqual([['tea']]);
  });
});

describe('long texts', () => {
  const prose = 'She went to the market near the old harbour, and bought 12 apples. ';

  it('[Decision 8] cost about as much as prose of the same length', async () => {
    const length = 60_000;
    const usual = await costOf(() => analyse(prose.repeat(length / prose.length)));
    for (const unit of [
      '\u0301\u0316',
      '\uff9e\u0301\u05b0',
      '\u05b0',
      'カ\uff9e',
      '\u0344',
      'a',
      '1,',
      "a'",
      'a-1',
      'Σ.',
      '日本',
      '\ufdfa',
    ]) {
      const text = `a${unit.repeat(length / unit.length)}`;
      // Combining marks in no order are the ones that took a hundred times as long.
      const sorted = unit.length === 2 ? `a${unit[0]?.repeat(length / 2)}${unit[1]?.repeat(length / 2)}` : text;
      for (const each of [text, sorted]) {
        expect(await costOf(() => analyse(each)), JSON.stringify(unit)).toBeLessThan(50 * usual);
      }
    }
  });

  it('[Decision 8] have at most 30 combining marks in a row before normalization', () => {
    for (let point = 0; point <= 0x10ffff; point++) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const character = String.fromCodePoint(point);
      const apart = character.normalize('NFKD');
      // It begins with a mark if it moves before one that belongs behind all others.
      if (`\u0345${character}`.normalize('NFKD') === `\u0345${apart}`) continue;
      expect(withFewMarks(`a${character.repeat(40)}b`), point.toString(16)).toBe(`a${character.repeat(30)}b`);
    }
    const words = 'Việt Nam, हिन्दी, עִבְרִית, กำลัง, e\u0301, カ\uff9e';
    expect(withFewMarks(words)).toBe(words);
  });

  it('[Decision 8] have the same terms in a worker thread', async () => {
    const long = `${prose.repeat(200)} XK-4471 東京に住む café`;
    expect(await analyseLater(long, callBy())).toEqual(analyse(long));
    expect(await analyseLater(' '.repeat(10_000), callBy())).toEqual([]);
    const aborted = AbortSignal.abort(new Error('aborted'));
    await expect(analyseLater(long, callOf(aborted))).rejects.toThrow('aborted');
  });

  it('[Decision 8] have at most 16,384 terms, and queries 256 from their first 4,096 characters', () => {
    const words = Array.from({ length: 70_000 }, (_, i) => `w${i}`);
    expect(analyse(words.join(' '))).toEqual(words.slice(0, 16_384));
    expect(queryTerms(words.join(' '))).toEqual(words.slice(0, 256));
    expect(queryTerms(`tea ${' '.repeat(4_096)} coffee`)).toEqual(['tea']);
  });
});
