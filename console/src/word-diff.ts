import { diffArrays } from 'diff';

/** A run of words of one text, or of both. */
export interface Run {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Characters of the longer text, and words removed and added, above which texts are not compared: that takes a tenth of a second. */
const MAX_LENGTH = 50_000;
const MAX_CHANGES = 1_000;
/** Texts that share less of the longer one are easier to read one after the other. */
const MIN_SHARED = 0.25;

/**
 * What turns one text into the other, word by word. Texts that are long or have little in common are removed and added as a whole.
 */
export function wordDiff(before: string, after: string): readonly Run[] {
  if (before === after) return [{ kind: 'same', text: before }];
  const longer = Math.max(before.length, after.length);
  if (longer <= MAX_LENGTH) {
    const changes = diffArrays(wordsOf(before), wordsOf(after), { maxEditLength: MAX_CHANGES }) ?? [];
    const runs = changes.map(({ value, added, removed }): Run => {
      const changed = added ? 'added' : 'removed';
      return { kind: added || removed ? changed : 'same', text: value.join('') };
    });
    const shared = runs.reduce((sum, { kind, text }) => (kind === 'same' ? sum + text.length : sum), 0);
    if (shared >= longer * MIN_SHARED) return joined(runs);
  }
  return [
    { kind: 'removed', text: before },
    { kind: 'added', text: after },
  ];
}

/** Words, and what stands between them, in every language: Chinese has no spaces. */
const WORDS = new Intl.Segmenter(undefined, { granularity: 'word' });
const wordsOf = (text: string): string[] => Array.from(WORDS.segment(text), ({ segment }) => segment);

/** Of one change, all that is removed stands before what is added; spaces within it belong to it. */
function joined(runs: readonly Run[]): Run[] {
  const parts: Run[] = [];
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
