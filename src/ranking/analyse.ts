import { stemmer } from 'stemmer';
import { BASE_FORMS } from './irregular-forms.ts';
import { STOP_WORDS } from './stop-words.ts';

/**
 * Stored with the data of a provider that keeps analysed terms: texts and queries meet only if both went
 * through the same rules. Raise it whenever `analyse` starts to answer differently.
 */
export const ANALYSER_VERSION = 1;

/** A "word" longer than this is data (base64, a hash chain); its head identifies it well enough. */
const MAX_TERM_LENGTH = 64;

const DIACRITICS = /[\u0300-\u036f]/g;
const POSSESSIVE = /['’]s(?![\p{L}\p{N}])/gu;
const APOSTROPHE = /(?<=\p{L})['’](?=\p{L})/gu;
/** Scripts written without spaces come out as one run and are cut into characters and pairs. */
const RUNS =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]+|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]]+/gv;
const UNSPACED = /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
/** `1,500` is `1500`, `23rd` is `23`. */
const THOUSANDS = /(?<=\d),(?=\d{3}(?!\d))/g;
const ORDINAL = /(?<=\d)(?:st|nd|rd|th)(?![\p{L}\p{N}])/gu;
/** Matches plain words too, so that a long run is passed in one step; `isCode` picks. */
const JOINED = /[\p{L}\p{N}]+(?:[-/][\p{L}\p{N}]+)*/gu;
const isCode = (joined: string): boolean => /[-/]/.test(joined) && /\d/.test(joined);
const ENGLISH = /^[a-z]{3,}$/;
/** More than any word has: only the end of a word changes when it is stemmed, so its first term is the same. */
const MAX_STEMMED = 2 * MAX_TERM_LENGTH;

/**
 * Distinct terms of a text, at most; the rest is not found by keyword. Some 40,000 words of English, or 8,000 characters of
 * Chinese. Every search of the owner reads all that are stored.
 */
export const MAX_TERMS = 16_384;

/**
 * The marks that `normalize` would sort, which takes quadratic time: no script has words with more than 30 of them in a
 * row (Unicode, "Stream-Safe Text Format"), and what comes on top is dropped. U+FF9E and U+FF9F become such marks.
 */
const MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;
/** No script becomes longer when its letters are taken apart; some single symbols become eighteen. */
const MOST_GROWTH = 4;
/** The text, fit for `normalize`. */
export const withFewMarks = (text: string): string => text.replace(MARKS, '$1');

/**
 * The distinct search terms of a text, in order of first appearance: case, width and accents folded, English
 * stop words dropped, English words brought to their base and stemmed. The one analyser behind keyword search on every provider.
 */
export function analyse(text: string): string[] {
  const apart = withFewMarks(text)
    .normalize('NFKD')
    .slice(0, MOST_GROWTH * text.length);
  const folded = apart.replace(DIACRITICS, '').normalize('NFKC').toLowerCase();
  const plain = folded.replace(POSSESSIVE, '').replace(APOSTROPHE, '').replace(THOUSANDS, '').replace(ORDINAL, '');
  const words = plain.matchAll(RUNS);
  const terms = new Set<string>();
  for (const [word] of words) {
    if (terms.size >= MAX_TERMS) break;
    if (UNSPACED.test(word)) addCharactersAndPairs(word, terms);
    else if (!STOP_WORDS.has(word)) terms.add(termOf(BASE_FORMS.get(word) ?? word));
  }
  // `XK-4471` is also found as `XK4471`; its parts stay terms, for whoever remembers only one.
  for (const [code] of plain.matchAll(JOINED))
    if (isCode(code)) terms.add(code.replace(/[-/]/g, '').slice(0, MAX_TERM_LENGTH));
  return [...terms].slice(0, MAX_TERMS);
}

const termOf = (word: string): string =>
  (word.length <= MAX_STEMMED && ENGLISH.test(word) ? stemmer(word) : word).slice(0, MAX_TERM_LENGTH);

/** Single characters let a one-character query match; pairs carry the meaning, as usual for CJK search without a dictionary. */
function addCharactersAndPairs(run: string, terms: Set<string>): void {
  let previous = '';
  for (const character of run) {
    if (terms.size >= MAX_TERMS) return;
    terms.add(character);
    if (previous !== '') terms.add(previous + character);
    previous = character;
  }
}

/** A query of more terms is a text; its first terms say what it is about, and ranking costs each term a look at each memory. */
const MAX_QUERY_TERMS = 256;

/** In characters, several hundred words: the rest of a longer query is not read. */
const MAX_QUERY_LENGTH = 4_096;

/** The terms of a query that count. */
export const queryTerms = (query: string): string[] =>
  analyse(query.slice(0, MAX_QUERY_LENGTH)).slice(0, MAX_QUERY_TERMS);
