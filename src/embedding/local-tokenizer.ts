import { withFewMarks } from '#ranking';

/**
 * Limits the time that a text takes. The model reads the first 128 tokens, and a token has at most 16 characters, so the limit changes
 * no vector. The exception is text after a very long run of unknown characters, which is one token.
 */
const MAX_CHARACTERS = 2048;
/** Characters before folding, which shortens white space and some ligatures. */
const MAX_UNFOLDED = 4 * MAX_CHARACTERS;

/** The part of a text that the model reads. White space becomes single blanks, since a line break would be an unknown word. */
export function readablePart(text: string): string {
  const folded = withFewMarks(text.slice(0, MAX_UNFOLDED)).normalize('NFKC').replace(/\s+/g, ' ').trim();
  if (folded.length <= MAX_CHARACTERS) return folded;
  const last = folded.codePointAt(MAX_CHARACTERS - 1) as number;
  return folded.slice(0, last > 0xffff ? MAX_CHARACTERS - 1 : MAX_CHARACTERS);
}

/** The pieces of words that the model knows, with their scores. The position of a piece is its token. */
export type Vocabulary = readonly (readonly [piece: string, score: number])[];

const UNKNOWN = 0;
/** Marks of the model at the beginning of the vocabulary, which no text contains. */
const RESERVED = 6;
const BLANK = '\u2581';

/**
 * Splits texts into tokens as the tokenizer of `@energetic-ai/embeddings` does, in linear instead of quadratic time: by the
 * pieces with the highest sum of scores.
 */
export function createTokenizer(vocabulary: Vocabulary): (text: string) => number[] {
  const scoreOf = (token: number): number => vocabulary[token]?.[1] ?? 0;
  const lengthOf = (token: number): number => vocabulary[token]?.[0].length ?? 1;
  /** Tokens by piece. The beginning of a longer piece that is no piece itself has no token. */
  const tokens = new Map<string, number | undefined>();
  for (let token = RESERVED; token < vocabulary.length; token++) {
    const [piece] = vocabulary[token] as Vocabulary[number];
    tokens.set(piece, token);
    for (let end = 1; end < piece.length; end++) {
      const beginning = piece.slice(0, end);
      if (!tokens.has(beginning)) tokens.set(beginning, undefined);
    }
  }

  return (text) => {
    if (text === '') return [];
    const symbols = [...`${BLANK}${text.normalize('NFKC').replaceAll(' ', BLANK)}`];
    /** For the symbols before a position: the highest sum of scores, and the last token that gives it. */
    const best = new Float64Array(symbols.length + 1);
    const last = new Int32Array(symbols.length + 1);
    for (let start = 0; start < symbols.length; start++) {
      const offer = (token: number, end: number) => {
        const score = (best[start] as number) + scoreOf(token);
        const other = best[end] as number;
        // The first symbols of a text have no sum yet, and neither have unknown ones, whose score is 0.
        if (other !== 0 && score < other) return;
        best[end] = score;
        last[end] = token;
      };
      let isKnown = false;
      let piece = '';
      for (let end = start + 1; end <= symbols.length; end++) {
        piece += symbols[end - 1];
        if (!tokens.has(piece)) break;
        const token = tokens.get(piece);
        if (token === undefined) continue;
        isKnown = true;
        offer(token, end);
      }
      if (!isKnown) offer(UNKNOWN, start + 1);
    }
    const path: number[] = [];
    for (let end = symbols.length; end > 0; ) {
      const token = last[end] as number;
      // Several unknown symbols in a row are one token.
      if (token !== UNKNOWN || path.at(-1) !== UNKNOWN) path.push(token);
      end -= lengthOf(token);
    }
    return path.reverse();
  };
}
