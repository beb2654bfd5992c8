import { countTokens, isWithinTokenLimit, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';

export interface Wanted {
  /** Best first. */
  readonly contents: readonly string[];
  /** Maximum tokens of all lines. */
  readonly budget: number;
}

export interface Lines {
  readonly text: string;
  readonly token_count: number;
  /** The position of each line's content in `contents`. */
  readonly taken: readonly number[];
}

/** Special tokens in a memory count as plain text. */
const PLAIN = { disallowedSpecial: new Set<string>() };
/** The cache would hold 100,000 strings of any length. */
setMergeCacheSize(0);

/**
 * Invisible characters, including bidirectional controls and tag characters: they could hold instructions to a model that
 * no person sees. Joiners and the two variation selectors of emoji stay, since scripts and emoji need them.
 */
const UNSEEN = /[[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]--[\u200c\u200d\ufe0e\ufe0f]]/gv;
const BREAKS = /[\s\p{Cc}]+/gu;
/** Text in the form of our citations: `[2]`, `[1, 3]`. */
const MARKERS = /\[(?=[ ,;–\p{Join_C}\p{VS}-]*\p{N})([\p{N} ,;–\p{Join_C}\p{VS}-]+)\]/gu;

/** The content on one line, without citations: `[2]` becomes `\[2\]`. */
const toLine = (content: string): string =>
  content.replace(UNSEEN, '').replace(BREAKS, ' ').trim().replace(MARKERS, '\\[$1\\]');

/** The tokenizer takes quadratic time for each of these runs. */
const WORDS = /[\p{L}\p{M}]+/gu;
const SYMBOLS = /[^\p{L}\p{N}\s]+/gu;
function stepsOf(line: string): number {
  let steps = 0;
  for (const [run] of line.matchAll(WORDS)) steps += Buffer.byteLength(run) ** 2;
  for (const [run] of line.matchAll(SYMBOLS)) steps += Buffer.byteLength(run) ** 2;
  return steps;
}
/** Limit for one block: a few tenths of a second. A megabyte of prose takes a tenth of it. */
const MAX_STEPS = 64_000_000;

/** The contents as numbered lines. A line that does not fit is skipped; a shorter line after it may fit. */
export function linesWithin({ contents, budget }: Wanted): Lines {
  const lines: string[] = [];
  const taken: number[] = [];
  let left = budget;
  let steps = MAX_STEPS;
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
  // Tokens may merge or split between lines, so the whole text is counted again.
  for (;;) {
    const text = lines.join('\n');
    const token_count = text === '' ? 0 : countTokens(text, PLAIN);
    if (token_count <= budget) return { text, token_count, taken };
    lines.pop();
    taken.pop();
  }
}
