import { describe, expect, it } from 'vitest';
import type { SearchHit } from '#contract';
import { withoutCopies } from '../../src/context/without-copies.ts';
import type { MarkedHit } from '../../src/core/current-memories.ts';

interface Given {
  readonly id?: string;
  readonly user_id?: string;
  readonly day?: number;
  readonly score?: number;
  readonly untrusted?: boolean;
}

const hit = (content: string, { id = content, user_id = 'u', day = 1, score = 0.5, untrusted = false }: Given = {}) =>
  ({
    score,
    memory: {
      id,
      content,
      user_id,
      created_at: `2025-01-${String(day).padStart(2, '0')}T00:00:00.000Z`,
      extensions: untrusted ? { 'x-omp-untrusted': true } : {},
    },
  }) as unknown as SearchHit;
const isCopy = ([a, b]: readonly [string, string]): boolean =>
  withoutCopies([hit(a, { id: 'a' }), hit(b, { id: 'b' })]).length === 1;

/** The same text, written otherwise. */
const SAME: readonly (readonly [string, string])[] = [
  ['Jonas has a birthday on 12 March', 'Jonas has a birthday on 12 March.'],
  ['Jonas has a birthday on 12 March', '  Jonas has a\n birthday on\u00a012 March!'],
  ['Jonas has a birthday on 12 March', 'jonas has a birthday on 12 March'],
  ['Jonas has a birthday on 12 March', '"Jonas has a birthday on 12 March."'],
  ['Ana’s cat said “no” — twice', 'Ana\'s cat said "no" - twice'],
  ['Ana cafe\u0301 Zoe\u0308', 'Ana café Zoë'],
  ['ＴＥＬ １２３', 'TEL 123'],
  ['10–12 people', '10-12 people'],
  ['お茶が好き。', 'お茶が好き'],
  ['...', '...'],
];

/** One text says something else than the other. */
const APART: readonly (readonly [string, string])[] = [
  [
    'Flight LH716 to Sapporo leaves on 29 June 2024 at 13:05 from terminal 2',
    'Flight LH716 to Sapporo leaves on 28 June 2024 at 13:05 from terminal 2',
  ],
  ['Jonas likes chess', 'Jonas dislikes chess'],
  ['Jonas likes chess', 'Jonas likes chess?'],
  ['Jonas has a birthday on 12 March', 'Jonas has a birthday on 13 March'],
  ['Jonas has a birthday on 12 March', 'Jonas has a birthday on 12 May'],
  ['Jonas has a birthday on 12 March', 'Jonah has a birthday on 12 March'],
  [
    'The user does drink coffee after lunch and likes it with a little milk',
    'The user does not drink coffee after lunch and likes it with a little milk',
  ],
  [
    'Ingrid takes 5 mg of amlodipine every morning for her blood pressure',
    'Ingrid takes 50 mg of amlodipine every morning for her blood pressure',
  ],
  ["Elsa is Karin's elder child and is fourteen", "Elsa is Karin's elder child and is fifteen"],
  ['Anna lent Jonas the book about trains', 'Jonas lent Anna the book about trains'],
  ['Ticket FRT-2219 asks for larger type', 'Ticket FRT-2291 asks for larger type'],
  ['costs 1.5 euros', 'costs 15 euros'],
  ['the freezer is at -5 degrees', 'the freezer is at 5 degrees'],
  ['the sum is 10⁵', 'the sum is 105'],
  ['a plank of 6"', "a plank of 6'"],
  ['writes C#', 'writes C'],
  ['writes C++', 'writes C'],
  ['pays 50%', 'pays 50'],
  ['the code is aB3x', 'the code is ab3x'],
  ['moved to the US', 'moved to the us'],
  ['the login is Anna', 'the login is anna'],
  ['the password is Sommer2023!', 'the password is Sommer2023'],
  ['hates 🍎', 'hates 🍏'],
  ['ja nein', 'janein'],
  ['...', '!!!'],
];

/** The same fact in a few other characters: what only a looser rule would merge. */
const EDITED: readonly (readonly [string, string])[] = [
  ['Jonas has a birthday on 12 March', 'Jonas has his birthday on 12 March'],
  ['Jonas has a birthday on 12 March', 'Jonas has a birthday on 12th March'],
  ['user prefers pnpm over npm for nodejs projects', 'The user prefers pnpm over npm for nodejs projects'],
  ['Maya is allergic to penicillin', 'Maya is alergic to penicillin'],
  ['Kofi does not drink alcohol', "Kofi doesn't drink alcohol"],
  ['The flight to Lisbon is TP1359, booking QX8LRM', 'Flight to Lisbon is TP1359, booking QX8LRM'],
];

describe('[Decision 58] copies', () => {
  it.each(SAME)('are %j and %j', (a, b) => {
    expect(isCopy([a, b])).toBe(true);
  });

  it.each([...APART, ...EDITED])('are not %j and %j', (a, b) => {
    expect(isCopy([a, b])).toBe(false);
  });

  it('are not told from other texts by any share of words or trigrams', () => {
    const words = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
    const trigrams = (text: string) => Array.from(text.toLowerCase(), (_, at) => text.slice(at, at + 3));
    for (const parts of [words, trigrams]) {
      const shared = ([a, b]: readonly [string, string]) => {
        const [left, right] = [new Set<string>(parts(a)), new Set<string>(parts(b))];
        const common = [...left].filter((part) => right.has(part)).length;
        return common / Math.max(1, left.size + right.size - common);
      };
      expect(Math.max(...APART.map(shared))).toBeGreaterThan(Math.max(...EDITED.map(shared)));
    }
  });

  it('give way to the newest, which takes the place and score of the best', () => {
    const hits = [
      hit('Likes tea.', { id: 'old', day: 1, score: 0.9 }),
      hit('has a dog', { id: 'dog', score: 0.8 }),
      hit('likes tea', { id: 'new', day: 3, score: 0.7 }),
      hit('likes tea!', { id: 'middle', day: 2, score: 0.6 }),
    ];
    const distinct = withoutCopies<MarkedHit>(hits).map(({ memory: { id }, score, copies }) => ({ id, score, copies }));
    expect(distinct).toEqual([
      { id: 'new', score: 0.9, copies: ['middle', 'old'] },
      { id: 'dog', score: 0.8, copies: undefined },
    ]);
  });

  it('[Decision 54] of untrusted keys give way to an older one of a trusted key', () => {
    const [shown, ...others] = withoutCopies<MarkedHit>([
      hit('likes tea!', { id: 'forged', day: 9, untrusted: true }),
      hit('likes tea', { id: 'true', day: 1 }),
    ]);
    expect([shown?.memory.id, shown?.copies, others]).toEqual(['true', ['forged'], []]);
    const [marked] = withoutCopies<MarkedHit>([
      hit('x', { id: 'a', day: 1, untrusted: true }),
      hit('x', { id: 'b', day: 2, untrusted: true }),
    ]);
    expect(marked?.memory).toMatchObject({ id: 'b', extensions: { 'x-omp-untrusted': true } });
  });

  it('are as new as what was said, not as the import that brought it', () => {
    const said = hit('x', { id: 'said', day: 1 });
    const imported = hit('x', { id: 'imported', day: 2 });
    Object.assign(imported.memory, { valid_from: '2019-01-01T00:00:00.000Z' });
    expect(withoutCopies<MarkedHit>([said, imported])[0]?.memory.id).toBe('said');
  });

  it('belong to one user', () => {
    expect(withoutCopies([hit('likes tea', { user_id: 'ana' }), hit('likes tea', { user_id: 'ben' })])).toHaveLength(2);
  });

  it('are told from the text alone if it is long, and from its normal form if that is not', () => {
    const long = 'word '.repeat(500);
    expect(isCopy([long, long])).toBe(true);
    expect(isCopy([long, `${long}.`])).toBe(false);
    // Eighteen characters in the normal form.
    expect(isCopy(['ﷺ'.repeat(1_000), `${'ﷺ'.repeat(1_000)}.`])).toBe(false);
  });
});
