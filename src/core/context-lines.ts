import { countTokens, isWithinTokenLimit, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';

export interface Wanted {
  /** Best first. */
  readonly contents: readonly string[];
  /** Most tokens of all lines together. */
  readonly budget: number;
}

export interface Lines {
  readonly text: string;
  readonly token_count: number;
  /** Which of the contents has each line. */
  readonly taken: readonly number[];
}

/** Special tokens written in a memory are plain text here. */
const PLAIN = { disallowedSpecial: new Set<string>() };
/** It would keep a hundred thousand pieces of whatever length. */
setMergeCacheSize(0);

/**
 * What cannot be seen, bidirectional controls and tag characters among it: it could tell a model what no person reads.
 * Joiners and the two variation selectors of emoji stay, as scripts and emoji need them.
 */
const UNSEEN = /[[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]--[\u200c\u200d\ufe0e\ufe0f]]/gv;
const BREAKS = /[\s\p{Cc}]+/gu;
/** What reads like one of our numbers, or several: `[2]`, `[1, 3]`. */
const MARKERS = /\[(?=[ ,;–\p{Join_C}\p{VS}-]*\p{N})([\p{N} ,;–\p{Join_C}\p{VS}-]+)\]/gu;

/** The content as part of one line, in which nothing is a citation: `[2]` becomes `\[2\]`. */
const toLine = (content: string): string =>
  content.replace(UNSEEN, '').replace(BREAKS, ' ').trim().replace(MARKERS, '\\[$1\\]');

/** The tokenizer merges each of these piece by piece, in steps that grow with the square of its length. */
const WORDS = /[\p{L}\p{M}]+/gu;
const SYMBOLS = /[^\p{L}\p{N}\s]+/gu;
function stepsOf(line: string): number {
  let steps = 0;
  for (const [run] of line.matchAll(WORDS)) steps += Buffer.byteLength(run) ** 2;
  for (const [run] of line.matchAll(SYMBOLS)) steps += Buffer.byteLength(run) ** 2;
  return steps;
}
/** Of one block: some tenths of a second. A megabyte of prose takes a tenth of them. */
const MOST_STEPS = 64_000_000;

/** The contents as numbered lines. A line that does not fit is left out: a shorter one further down may. */
export function linesWithin({ contents, budget }: Wanted): Lines {
  const lines: string[] = [];
  const taken: number[] = [];
  let left = budget;
  let steps = MOST_STEPS;
  for (const [position, content] of contents.entries()) {
    if (left <= 0) break;
    const line = `[${lines.length + 1}] ${toLine(content)}`;
    const needed = stepsOf(line);
    if (needed > steps) continue;
    steps -= needed;
    const tokens = isWithinTokenLimit(`${line}\n`, left, PLAIN);
    if (tokens === false) continue;
    lines.push(line);
    taken.push(position);
    left -= tokens;
  }
  // Tokens may merge or split where lines meet, so the whole is counted once more and has the last word.
  for (;;) {
    const text = lines.join('\n');
    const token_count = text === '' ? 0 : countTokens(text, PLAIN);
    if (token_count <= budget) return { text, token_count, taken };
    lines.pop();
    taken.pop();
  }
}
