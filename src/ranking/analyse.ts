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
const UNSPACED_SCRIPTS = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar']
  .map((script) => `\\p{sc=${script}}`)
  .join('');
const RUNS = new RegExp(`[${UNSPACED_SCRIPTS}ー]+|[[\\p{L}\\p{N}\\p{M}]--[${UNSPACED_SCRIPTS}ー]]+`, 'gv');
const UNSPACED = new RegExp(`^[${UNSPACED_SCRIPTS}]`, 'v');
/** `1,500` is `1500`, `23rd` is `23`. */
const THOUSANDS = /(?<=\d),(?=\d{3}(?!\d))/g;
const ORDINAL = /(?<=\d)(?:st|nd|rd|th)(?![\p{L}\p{N}])/gu;
/** Matches plain words too, so that a long run is passed in one step; `isCode` picks. */
const JOINED = /[\p{L}\p{N}]+(?:[-/][\p{L}\p{N}]+)*/gu;
const isCode = (joined: string): boolean => /[-/]/.test(joined) && /\d/.test(joined);
const ENGLISH = /^[a-z]{3,}$/;

/**
 * The distinct search terms of a text, in order of first appearance: case, width and accents folded, English
 * stop words dropped, English words brought to their base and stemmed. The one analyser behind keyword search on every provider.
 */
export function analyse(text: string): string[] {
  const folded = text.normalize('NFKD').replace(DIACRITICS, '').normalize('NFKC').toLowerCase();
  const plain = folded.replace(POSSESSIVE, '').replace(APOSTROPHE, '').replace(THOUSANDS, '').replace(ORDINAL, '');
  const words = plain.matchAll(RUNS);
  const terms = new Set<string>();
  for (const [word] of words) {
    if (UNSPACED.test(word)) addCharactersAndPairs(word, terms);
    else if (!STOP_WORDS.has(word)) terms.add(termOf(BASE_FORMS.get(word) ?? word));
  }
  // `XK-4471` is also found as `XK4471`; its parts stay terms, for whoever remembers only one.
  for (const [code] of plain.matchAll(JOINED))
    if (isCode(code)) terms.add(code.replace(/[-/]/g, '').slice(0, MAX_TERM_LENGTH));
  return [...terms];
}

const termOf = (word: string): string => (ENGLISH.test(word) ? stemmer(word) : word).slice(0, MAX_TERM_LENGTH);

/** Single characters let a one-character query match; pairs carry the meaning, as usual for CJK search without a dictionary. */
function addCharactersAndPairs(run: string, terms: Set<string>): void {
  let previous = '';
  for (const character of run) {
    terms.add(character);
    if (previous !== '') terms.add(previous + character);
    previous = character;
  }
}

/** A query of more terms is a text; its first terms say what it is about, and ranking costs each term a look at each memory. */
const MAX_QUERY_TERMS = 256;

/** The terms of a query that count. */
export const queryTerms = (query: string): string[] => analyse(query).slice(0, MAX_QUERY_TERMS);

/** Keyword search knows this many terms of a memory, the first: every search of its owner reads all that are stored. */
export const MAX_MEMORY_TERMS = 4096;

/** The terms of a memory that count. */
export const memoryTerms = (content: string): string[] => analyse(content).slice(0, MAX_MEMORY_TERMS);
