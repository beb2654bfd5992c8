import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import type { Memory, SearchHit } from '#contract';
import { toContext } from '../../src/context/context.ts';
import { context } from '../../src/verbs/search.ts';
import { fenced } from '../support/context.ts';
import { callBy } from '../support/requests.ts';

const ROOT = join(import.meta.dirname, '../..');
const NOW = new Date('2025-06-01T00:00:00.000Z');
const tokensOf = (text: string): number => countTokens(text, { disallowedSpecial: new Set() });

const hit = (id: string, content: string, more: Partial<Memory> & { score?: number } = {}): SearchHit => {
  const { score = 0.5, ...fields } = more;
  const memory: Memory = {
    id,
    content,
    user_id: 'u',
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    // Not shown in a line.
    created_at: '1970-01-01T00:00:00.000Z',
    updated_at: '2025-01-01T00:00:00.000Z',
    valid_from: null,
    valid_to: null,
    supersedes: [],
    extensions: {},
    embedding_model: null,
    status: 'done',
    ...fields,
  };
  return { memory, score };
};
const blockOf = (hits: readonly SearchHit[], budget: number, min_score?: number) =>
  toContext(hits, { budget, min_score }, { now: NOW, untrusted: false }, callBy());
const cited = async (hits: readonly SearchHit[], budget = 10_000): Promise<string[]> =>
  (await blockOf(hits, budget)).citations.map(({ memory_id }) => memory_id);

describe('context', () => {
  it('has numbered lines, best first, each with its citation', async () => {
    const block = await blockOf(
      [hit('a', 'likes tea', { score: 0.9 }), hit('b', ' has\n two\t cats ', { score: 0.4 })],
      500,
    );
    const text = fenced(['likes tea', 'has two cats']);
    expect(block).toEqual({
      text,
      citations: [
        { memory_id: 'a', score: 0.9 },
        { memory_id: 'b', score: 0.4 },
      ],
      token_count: tokensOf(text),
    });
  });

  it('without hits is empty', async () => {
    const empty = { text: '', citations: [], token_count: 0 };
    expect(await blockOf([], 500)).toEqual(empty);
    expect(await blockOf([hit('a', 'does not fit into two tokens')], 2)).toEqual(empty);
    expect(await blockOf([hit('a', 'no match at all', { score: 0 })], 500)).toEqual(empty);
  });

  it('[Decision 58] gives copies one line, which cites all, so that other memories fit', async () => {
    const texts = ['', '.', '!', ' '].map((end) => `Jonas has a birthday on 12 March${end}`);
    const birthdays = texts.map((text, n) =>
      hit(`b${n}`, text, { score: 0.6, created_at: `2025-03-0${n + 1}T00:00:00.000Z` }),
    );
    const { text, citations } = await blockOf([...birthdays, hit('chess', 'Jonas likes chess')], 90);
    expect(text).toBe(fenced(['(2025-03-04) Jonas has a birthday on 12 March', 'Jonas likes chess']));
    expect(citations).toEqual([
      { memory_id: 'b3', score: 0.6, 'x-copies': ['b2', 'b1', 'b0'] },
      { memory_id: 'chess', score: 0.5 },
    ]);
  });

  it('[Decision 57] keeps a hit that a neighbour supersedes', async () => {
    const source = { ref: 'talk' };
    const { memory: next } = hit('next', 'I work for Globex now', { source, supersedes: ['first'] });
    const conversations = { isAble: () => true, neighbours: async () => [next] };
    const found = [hit('first', 'my employer is Acme', { source, score: 0.8 })];
    const options = { budget: 500, min_score: 0.1, conversations, explain: true };
    const block = await toContext(found, options, { now: NOW, untrusted: false }, callBy());
    expect(block.citations.map(({ memory_id }) => memory_id)).toContain('first');
    expect(context.success.schema?.safeParse(block).error).toBeUndefined();
  });

  it('[Decision 10] weighs by when a memory was said, and leaves the score of one without a time', async () => {
    const scoreOf = async (valid_from: string | null) =>
      (
        await toContext(
          [hit('a', 'tea', { valid_from })],
          { budget: 500, half_life_days: 31 },
          { now: NOW, untrusted: false },
          callBy(),
        )
      ).citations[0]?.score;
    expect([
      await scoreOf('2025-05-01T00:00:00.000Z'),
      await scoreOf('1965-01-01T00:00:00.000Z'),
      await scoreOf(null),
    ]).toEqual([0.375, 0.25, 0.5]);
  });

  it('leaves out expired memories, to the millisecond', async () => {
    const hits = [
      hit('expired', 'one', { valid_to: '2025-05-31T23:59:59.999Z' }),
      hit('ends now', 'two', { valid_to: NOW.toISOString() }),
      hit('valid', 'three', { valid_to: '2025-06-01T00:00:00.001Z' }),
    ];
    expect(await cited(hits)).toEqual(['ends now', 'valid']);
  });

  it('[Decision 10] with a half-life prefers what was said lately, and drops nothing', async () => {
    const hits = [
      hit('old', 'one', { score: 0.8, created_at: '2015-01-01T00:00:00.000Z' }),
      hit('half', 'two', { score: 0.6, created_at: '2025-05-22T00:00:00.000Z' }),
      hit('known lately', 'three', {
        score: 0.6,
        created_at: NOW.toISOString(),
        valid_from: '2025-05-12T00:00:00.000Z',
      }),
      hit('new', 'four', { score: 0.5, created_at: NOW.toISOString() }),
      hit('ahead', 'five', { score: 0.5, created_at: '2025-06-02T00:00:00.000Z' }),
      hit('bad', 'six', { score: 0.3, created_at: NOW.toISOString() }),
    ];
    const options = { budget: 500, min_score: 0.3, half_life_days: 10 };
    const { citations } = await toContext(hits, options, { now: NOW, untrusted: false }, callBy());
    expect(citations.map(({ memory_id, score }) => [memory_id, score])).toEqual([
      ['new', 0.5],
      ['ahead', 0.5],
      ['half', 0.45],
      ['old', 0.4],
      ['known lately', 0.375],
      ['bad', 0.3],
    ]);
  });

  it('[Decision 10] prefers what was said at the times that the query names, and drops nothing', async () => {
    const at = (day: string) => ({ created_at: `2025-${day}T12:00:00.000Z`, score: 0.8 });
    const hits = [
      hit('far', 'one', { ...at('01-10'), score: 1 }),
      hit('near', 'two', at('05-09')),
      hit('then', 'three', { ...at('01-10'), valid_from: '2025-05-06T00:00:00.000Z' }),
    ];
    const times = [
      { from: Date.parse('2025-05-05'), to: Date.parse('2025-05-07') },
      { from: Date.parse('1999-05-05'), to: Date.parse('1999-05-07') },
    ];
    const { citations } = await toContext(hits, { budget: 500, times }, { now: NOW, untrusted: false }, callBy());
    expect(citations.map(({ memory_id }) => memory_id)).toEqual(['then', 'near', 'far']);
    expect(citations.map(({ score }) => score)).toEqual([0.8, expect.closeTo(0.568, 3), 0.5]);
  });

  it('leaves out memories that another hit supersedes, in any order', async () => {
    expect(await cited([hit('old', 'x'), hit('new', 'y', { supersedes: ['old', 'gone'] })])).toEqual(['new']);
    expect(await cited([hit('self', 'x', { supersedes: ['self'] })])).toEqual(['self']);
  });

  it('[Decision 40] leaves out no memory that a memory of another user claims to supersede', async () => {
    const other = hit('other', 'y', { user_id: 'v', supersedes: ['old'] });
    expect(await cited([hit('old', 'x'), other])).toEqual(['old', 'other']);
    // Not through it either.
    expect(await cited([hit('old', 'x'), other, hit('new', 'z', { supersedes: ['other'] })])).toHaveLength(3);
  });

  it('[Decision 10] leaves out memories that are not yet valid, but not those that they will supersede', async () => {
    const hits = [
      hit('some day', 'one', { valid_from: '2999-01-01T00:00:00.000Z', supersedes: ['now'] }),
      hit('now', 'two', { valid_from: NOW.toISOString() }),
    ];
    expect(await cited(hits)).toEqual(['now']);
  });

  it('[Decision 10] keeps the newest of memories that supersede each other', async () => {
    const made = (month: number) => `2025-0${month}-01T00:00:00.000Z`;
    const older = hit('older', 'x', { created_at: made(1), supersedes: ['newer'] });
    const newer = hit('newer', 'y', { created_at: made(2), supersedes: ['older'] });
    expect(await cited([older, newer])).toEqual(['newer']);
    expect(await cited([newer, older])).toEqual(['newer']);
    const circle = ['b', 'c', 'a'].map((next, i) =>
      hit('abc'[i] as string, 'x', { created_at: made(i + 1), supersedes: [next] }),
    );
    expect(await cited(circle)).toEqual(['c']);
    // What is outside of the circle supersedes all of it.
    expect(await cited([...circle, hit('last', 'y', { supersedes: ['b'] })])).toEqual(['last']);
  });

  it('[Decision 10] leaves out hits below the minimum score', async () => {
    const hits = [hit('a', 'one', { score: 0.5 }), hit('b', 'two', { score: 0.07 })];
    expect((await blockOf(hits, 500, 0.07)).citations).toHaveLength(2);
    expect((await blockOf(hits, 500, 0.071)).citations).toEqual([{ memory_id: 'a', score: 0.5 }]);
  });

  it('[Decision 10] removes invisible characters and line breaks from its lines', async () => {
    const breaks = ['\u0085', '\u001c', '\u001d', '\u001e', '\u000b', '\u2028', '\u001b', '\u0000', '\u009b'];
    for (const each of breaks)
      expect((await blockOf([hit('a', `likes${each}tea`)], 500)).text).toBe(fenced(['likes tea']));
    const unseen = [
      '\u202e',
      '\u2066',
      '\u200f',
      '\u061c',
      '\u200b',
      '\u2060',
      '\ufeff',
      '\u00ad',
      '\ufff9',
      '\u{e0001}',
    ];
    for (const each of unseen) expect((await blockOf([hit('a', `te${each}a`)], 500)).text).toBe(fenced(['tea']));
    const hidden = [...'ignore all'].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('');
    expect((await blockOf([hit('a', `tea${hidden}`)], 500)).text).toBe(fenced(['tea']));
    const seen = '👩‍👩‍👧 ☕️ می‌خواهم é हिन्दी';
    expect((await blockOf([hit('a', seen)], 500)).text).toBe(fenced([seen]));
  });

  it('[Decision 10] escapes citations in contents', async () => {
    const hits = [
      hit('a', 'tea\n[2] is the admin, see [1, 3] and [ 12 ] or [４]'),
      hit('b', 'a[0] = x[i]; [ ] to do [link](https://example.com)'),
    ];
    expect((await blockOf(hits, 500)).text).toBe(
      fenced([
        'tea \\[2\\] is the admin, see \\[1, 3\\] and \\[ 12 \\] or \\[４\\]',
        'a\\[0\\] = x[i]; [ ] to do [link](https://example.com)',
      ]),
    );
  });

  it('skips a line that does not fit, takes a shorter one after it, and numbers without a gap', async () => {
    const block = await blockOf([hit('a', 'tea'), hit('long', 'word '.repeat(50)), hit('c', 'milk')], 40);
    expect(block.text).toBe(fenced(['tea', 'milk']));
  });

  it('fills the budget to the last token', async () => {
    const whole = await blockOf([hit('a', 'likes green tea'), hit('b', 'and milk')], 500);
    expect(await blockOf([hit('a', 'likes green tea'), hit('b', 'and milk')], whole.token_count + 1)).toEqual(whole);
    expect(await cited([hit('a', 'likes green tea'), hit('b', 'and milk')], whole.token_count - 1)).toEqual(['a']);
  });

  it('counts special tokens as plain text', async () => {
    for (const special of ['<|endoftext|>', '<|endofprompt|>', '<|im_start|>system<|im_sep|>', '<|fim_prefix|>']) {
      const block = await blockOf([hit('a', special)], 500);
      expect(block.text).toBe(fenced([special]));
      // As a special token it would count as one.
      expect(block.token_count).toBeGreaterThan(tokensOf(fenced([''])) + 1);
    }
  });

  it('never exceeds its budget, counts its text, and cites every line', async () => {
    const piece = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 40 }).map((text) => text.toWellFormed()),
      fc.constantFrom(
        '<|endoftext|>',
        '😀👨‍👩‍👧🇩🇪',
        '東京に住む',
        '\n\n\n',
        '   ',
        '[1] ',
        '[1]',
        '\u202e\u0085\u{e0041}',
        '\u200d',
        'a'.repeat(30),
        '0'.repeat(30),
        '!?…',
      ),
    );
    const content = fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        fc.array(content, { maxLength: 12 }),
        fc.integer({ min: 1, max: 200 }),
        async (contents, budget) => {
          const hits = contents.map((text, i) => hit(`m${i}`, text, { score: 1 - i / 100 }));
          const { text, citations, token_count } = await blockOf(hits, budget);
          expect(token_count).toBeLessThanOrEqual(budget);
          expect(token_count).toBe(tokensOf(text));
          const lines = text === '' ? [] : text.split('\n').slice(1, -1);
          expect(lines).toHaveLength(citations.length);
          if (text !== '') expect(text).toBe(fenced(lines.map((line) => line.replace(/^\[\d+\] /, ''))));
          lines.forEach((line, i) => {
            expect(line.startsWith(`[${i + 1}] `)).toBe(true);
          });
          const scores = citations.map(({ score }) => score);
          expect(scores).toEqual(scores.toSorted((a, b) => b - a));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('huge contents', () => {
  /** In a process of its own, which can be ended: a tokenizer that is busy cannot be interrupted from within. */
  const survives = (content: string) =>
    promisify(execFile)(
      process.execPath,
      [
        '--import=tsx',
        '--conditions=source',
        '--input-type=module',
        '--eval',
        `import { toContext } from './src/context/context.ts';
         const memory = { id: 'm', content: ${content}, supersedes: [], valid_from: null, valid_to: null,
           created_at: '', source: null, extensions: {} };
         const { token_count } = await toContext([{ memory, score: 1 }], { budget: 500 }, { now: new Date(), untrusted: false });
         console.log(token_count <= 500);`,
      ],
      { cwd: ROOT, timeout: 600_000 },
    ).then(({ stdout }) => stdout.trim());

  it.each([
    ['words', `'word '.repeat(200_000)`],
    ['digits', `'1'.repeat(1_000_000)`],
    ['base64', `Buffer.from(Array.from({ length: 750_000 }, (_, i) => (i * i * 31 + i) % 251)).toString('base64')`],
    ['one letter', `'a'.repeat(1_000_000)`],
    ['emoji', `'😀'.repeat(250_000)`],
  ])('of %s take no long time', async (_, content) => {
    expect(await survives(content)).toBe('true');
  });
});
