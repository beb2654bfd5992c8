/** A run of words of one text, or of both. */
export interface Part {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Characters of the longer text, and pairs of words, above which texts are not compared: that takes a tenth of a second. */
const MAX_LENGTH = 50_000;
const MAX_PAIRS = 4_000_000;
/** Texts that share less of the longer one are easier to read one after the other. */
const MIN_SHARED = 0.25;

/**
 * What turns one text into the other, word by word. Texts that are long or have little in common are removed and added as a whole.
 * Takes time in proportion to the pairs of words between the first difference and the last, and memory to the words (Hirschberg).
 */
export function wordDiff(before: string, after: string): readonly Part[] {
  if (before === after) return [{ kind: 'same', text: before }];
  const longer = Math.max(before.length, after.length);
  if (longer <= MAX_LENGTH) {
    const runs: Part[] = [];
    const isCompared = compare(wordsOf(before), wordsOf(after), (kind, words) => {
      if (words.length > 0) runs.push({ kind, text: words.join('') });
    });
    const shared = runs.reduce((sum, { kind, text }) => (kind === 'same' ? sum + text.length : sum), 0);
    if (isCompared && shared >= longer * MIN_SHARED) return joined(runs);
  }
  return [
    { kind: 'removed', text: before },
    { kind: 'added', text: after },
  ];
}

/** Words, and what stands between them, in every language: Chinese has no spaces. */
const WORDS = new Intl.Segmenter(undefined, { granularity: 'word' });
const wordsOf = (text: string): readonly string[] => Array.from(WORDS.segment(text), ({ segment }) => segment);

/** Calls `add` with runs of words, in order. False: there are too many pairs of words, and it did nothing. */
function compare(
  before: readonly string[],
  after: readonly string[],
  add: (kind: Part['kind'], words: readonly string[]) => void,
): boolean {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const a = before.slice(start, before.length - end);
  const b = after.slice(start, after.length - end);
  if (a.length * b.length > MAX_PAIRS) return false;
  add('same', before.slice(0, start));
  const half = a.length >> 1;
  const [word] = a;
  if (half > 0 && b.length > 0) {
    const cut = bestCut(a.slice(0, half), a.slice(half), b);
    compare(a.slice(0, half), b.slice(0, cut), add);
    compare(a.slice(half), b.slice(cut), add);
  } else if (a.length === 1 && word !== undefined && b.includes(word)) {
    add('added', b.slice(0, b.indexOf(word)));
    add('same', a);
    add('added', b.slice(b.indexOf(word) + 1));
  } else {
    add('removed', a);
    add('added', b);
  }
  add('same', before.slice(before.length - end));
  return true;
}

/** Where to cut `b`, so that its parts have the most words in common with the two parts of the other text. */
function bestCut(first: readonly string[], second: readonly string[], b: readonly string[]): number {
  const heads = commonWords(first, b);
  const tails = commonWords(second.toReversed(), b.toReversed());
  let best = 0;
  const inCommon = (cut: number) => (heads[cut] ?? 0) + (tails[b.length - cut] ?? 0);
  for (let cut = 1; cut <= b.length; cut++) if (inCommon(cut) > inCommon(best)) best = cut;
  return best;
}

/** How many words `a` has in common, in order, with the first 0, 1, 2… words of `b`. */
function commonWords(a: readonly string[], b: readonly string[]): Uint32Array {
  const row = new Uint32Array(b.length + 1);
  for (const word of a) {
    let diagonal = 0;
    for (let n = 1; n <= b.length; n++) {
      const above = row[n] ?? 0;
      row[n] = word === b[n - 1] ? diagonal + 1 : Math.max(above, row[n - 1] ?? 0);
      diagonal = above;
    }
  }
  return row;
}

/** Of one change, all that is removed stands before what is added; spaces within it belong to it. */
function joined(runs: readonly Part[]): Part[] {
  const parts: Part[] = [];
  let [removed, added, space] = ['', '', ''];
  const end = (same: string) => {
    const texts = { removed, added, same: space + same };
    [removed, added, space] = ['', '', ''];
    for (const kind of ['removed', 'added', 'same'] as const) {
      const last = parts.at(-1);
      if (texts[kind] === '') continue;
      if (last?.kind === kind) parts[parts.length - 1] = { kind, text: last.text + texts[kind] };
      else parts.push({ kind, text: texts[kind] });
    }
  };
  for (const { kind, text } of runs) {
    if (kind === 'same') {
      if (removed + added !== '' && text.trim() === '') space += text;
      else end(text);
    } else {
      removed += space;
      added += space;
      space = '';
      if (kind === 'removed') removed += text;
      else added += text;
    }
  }
  end('');
  return parts;
}
