import { stemmer } from 'stemmer';
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
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]+|[\p{L}\p{N}\p{M}]+/gu;
const UNSPACED = /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const ENGLISH = /^[a-z]{3,}$/;

/**
 * The distinct search terms of a text, in order of first appearance: case, width and accents folded, English
 * stop words dropped, English words stemmed. The one analyser behind keyword search on every provider.
 */
export function analyse(text: string): string[] {
  const folded = text.normalize('NFKD').replace(DIACRITICS, '').normalize('NFKC').toLowerCase();
  const words = folded.replace(POSSESSIVE, '').replace(APOSTROPHE, '').matchAll(RUNS);
  const terms = new Set<string>();
  for (const [word] of words) {
    if (UNSPACED.test(word)) addCharactersAndPairs(word, terms);
    else if (!STOP_WORDS.has(word)) terms.add((ENGLISH.test(word) ? stemmer(word) : word).slice(0, MAX_TERM_LENGTH));
  }
  return [...terms];
}

/** Single characters let a one-character query match; pairs carry the meaning, as usual for CJK search without a dictionary. */
function addCharactersAndPairs(run: string, terms: Set<string>): void {
  let previous = '';
  for (const character of run) {
    terms.add(character);
    if (previous !== '') terms.add(previous + character);
    previous = character;
  }
}
