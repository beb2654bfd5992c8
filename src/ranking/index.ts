import { stemmer } from 'stemmer';
import type { Call, RankingOptions, Vector } from '#contract';
import { openThread } from '#toolbox';

/*
 * How every provider ranks: the terms of a text, the form of a vector, and the score that both add up to.
 */

/**
 * Stored by providers that store terms: the terms of texts and queries match only if the same rules produced both. Raise it
 * whenever the results of `analyse` change.
 */
export const ANALYSER_VERSION = 1;

/** A longer "word" is data, such as base64; its start identifies it well enough. */
const MAX_TERM_LENGTH = 64;

const DIACRITICS = /[\u0300-\u036f]/g;
const POSSESSIVE = /['’]s(?![\p{L}\p{N}])/gu;
const APOSTROPHE = /(?<=\p{L})['’](?=\p{L})/gu;
/** Text in scripts without spaces is one run, which is split into characters and pairs. */
const RUNS =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]+|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}ー]]+/gv;
const UNSPACED = /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
/** `1,500` is `1500`, `23rd` is `23`. */
const THOUSANDS = /(?<=\d),(?=\d{3}(?!\d))/g;
const ORDINAL = /(?<=\d)(?:st|nd|rd|th)(?![\p{L}\p{N}])/gu;
/** Also matches plain words, to skip a long run in one step; `isCode` selects the codes. */
const JOINED = /[\p{L}\p{N}]+(?:[-/][\p{L}\p{N}]+)*/gu;
const isCode = (joined: string): boolean => /[-/]/.test(joined) && /\d/.test(joined);
const ENGLISH = /^[a-z]{3,}$/;
/** Longest word that is stemmed. Stemming changes only the end of a word, so a longer one keeps its term. */
const MAX_STEMMED = 2 * MAX_TERM_LENGTH;

/**
 * Maximum distinct terms of a text; keyword search does not find the rest. About 40,000 words of English or 8,000 characters
 * of Chinese. Every search of the owner reads all stored terms.
 */
export const MAX_TERMS = 16_384;

/**
 * Combining marks after the first 30 in a row, which are dropped: `normalize` sorts them in quadratic time, and no script
 * uses more (Unicode, "Stream-Safe Text Format"). U+FF9E and U+FF9F become combining marks.
 */
const MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;
/** Longest decomposition of a long text, per character. No script exceeds it, but some symbols become eighteen characters. */
const MAX_GROWTH = 4;
/** What any text may grow by, in characters. */
const FREE_GROWTH = 1_024;
/** The text with at most 30 combining marks in a row, for `normalize`. */
export const withFewMarks = (text: string): string => text.replace(MARKS, '$1');

/**
 * The distinct search terms of a text, in order of first appearance. Folds case, width and accents, drops English stop
 * words, and stems English words after replacing irregular forms by their base. Every provider uses this analyser.
 */
export function analyse(text: string): string[] {
  const decomposed = withFewMarks(text)
    .normalize('NFKD')
    .slice(0, MAX_GROWTH * text.length + FREE_GROWTH);
  const folded = decomposed.replace(DIACRITICS, '').normalize('NFKC').toLowerCase();
  const plain = folded.replace(POSSESSIVE, '').replace(APOSTROPHE, '').replace(THOUSANDS, '').replace(ORDINAL, '');
  const words = plain.matchAll(RUNS);
  const terms = new Set<string>();
  for (const [word] of words) {
    if (terms.size >= MAX_TERMS) break;
    if (UNSPACED.test(word)) addCharactersAndPairs(word, terms);
    else if (!STOP_WORDS.has(word)) terms.add(termOf(BASE_FORMS.get(word) ?? word));
  }
  // `XK-4471` is also found as `XK4471`. Its parts are terms too.
  for (const [code] of plain.matchAll(JOINED))
    if (isCode(code)) terms.add(code.replace(/[-/]/g, '').slice(0, MAX_TERM_LENGTH));
  return [...terms].slice(0, MAX_TERMS);
}

const termOf = (word: string): string =>
  (word.length <= MAX_STEMMED && ENGLISH.test(word) ? stemmer(word) : word).slice(0, MAX_TERM_LENGTH);

/** Characters for one-character queries, and pairs as usual for CJK search without a dictionary. */
function addCharactersAndPairs(run: string, terms: Set<string>): void {
  let previous = '';
  for (const character of run) {
    if (terms.size >= MAX_TERMS) return;
    terms.add(character);
    if (previous !== '') terms.add(previous + character);
    previous = character;
  }
}

/** Maximum terms of a query. Ranking takes time for each term and memory, and the first terms show the topic of a long query. */
const MAX_QUERY_TERMS = 256;

/** Characters of a query that are analysed: several hundred words. */
const MAX_QUERY_LENGTH = 4_096;

/** The terms of a query that ranking uses. */
export const queryTerms = (query: string): string[] =>
  analyse(query.slice(0, MAX_QUERY_LENGTH)).slice(0, MAX_QUERY_TERMS);

/** Longest text that is analysed on the event loop, in characters: a few milliseconds. Nearly all memories are shorter. */
const MAX_INLINE_LENGTH = 4_096;

/** One per process, also for several gateways: it holds no data, and a thread takes 10 MB. */
const thread = openThread<string, string>(
  '#analyse-worker',
  (cause) => new Error('the thread that analyses long texts died', { cause }),
);

/** `analyse`, in a worker thread for long texts. */
export const analyseLater = async (text: string, call: Call): Promise<string[]> =>
  text.length <= MAX_INLINE_LENGTH ? analyse(text) : analyseInThread(text, call);

async function analyseInThread(text: string, call: Call): Promise<string[]> {
  const terms = await thread.ask(text, call);
  return terms === '' ? [] : terms.split('\n');
}

/** Whole words of a query, without the punctuation around them. */
const WRITTEN = /[\p{L}\p{N}\p{M}](?:.*[\p{L}\p{N}\p{M}])?/su;

/**
 * The terms of a query that rank, each as the query writes it. The terms of a word with several (a code, text without spaces)
 * stay as analysed.
 */
function writtenTerms(query: string): ReadonlyMap<string, string> {
  const words = new Map<string, string>();
  for (const [word] of query.slice(0, MAX_QUERY_LENGTH).matchAll(/\S+/gu)) {
    const [term, ...more] = analyse(word);
    if (term !== undefined && more.length === 0 && !words.has(term)) words.set(term, WRITTEN.exec(word)?.[0] ?? term);
  }
  return new Map(queryTerms(query).map((term) => [term, words.get(term) ?? term]));
}

/** For each content: which terms of the query it has, as `writtenTerms`. Long contents are analysed in the worker thread. */
export async function matchedTerms(query: string, contents: readonly string[], call: Call): Promise<string[][]> {
  const written = [...writtenTerms(query)];
  const matched: string[][] = [];
  let length = 0;
  for (const content of contents) {
    length += content.length;
    const terms = new Set(length <= MAX_INLINE_LENGTH ? analyse(content) : await analyseInThread(content, call));
    matched.push(written.filter(([term]) => terms.has(term)).map(([, word]) => word));
  }
  return matched;
}

/** IEEE 754 half precision, the stored form of vectors: a row with 512 dimensions stays inline in a Postgres page. */
const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The half-precision bit pattern nearest to `value`, ties to even. Beyond ±65504: infinity. */
export function toHalfBits(value: number): number {
  float[0] = value;
  const word = bits[0] as number;
  const sign = (word >>> 16) & 0x8000;
  const exponent = ((word >>> 23) & 0xff) - 112;
  const mantissa = word & 0x7fffff;
  if (exponent >= 31) return sign | (exponent === 143 && mantissa !== 0 ? 0x7e00 : 0x7c00);
  if (exponent > 0) return sign | roundToEven((exponent << 23) | mantissa, 13);
  if (exponent < -10) return sign;
  return sign | roundToEven(mantissa | 0x800000, 14 - exponent);
}

/** Rounding may carry into the exponent, which is exactly the next representable number. */
function roundToEven(value: number, dropped: number): number {
  const rounded = value >>> dropped;
  const rest = value & ((1 << dropped) - 1);
  const tie = 1 << (dropped - 1);
  return rest > tie || (rest === tie && (rounded & 1) === 1) ? rounded + 1 : rounded;
}

export function fromHalfBits(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

/** Components are multiples of 1/4096, and vectors are slightly shorter than 1: see `toUnitHalf`. */
const GRID = 4096;
const STEP = 1 / 1024;

/**
 * Scales a vector to slightly less than length 1 and rounds its components to a grid that half precision represents
 * exactly. On that grid every sum of products below 1 is exact even in single precision, so all stores compute the same
 * cosine in any order of addition and order near ties alike. The rounding changes a cosine by about 1e-4. The zero vector
 * stays zero.
 */
export function toUnitHalf(vector: ArrayLike<number>): Float32Array {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += (vector[i] as number) ** 2;
  if (squares === 0) return new Float32Array(vector.length);
  const scale = 1 / Math.sqrt(squares);
  // Rounding can lengthen a vector with similar components; then the target length decreases.
  for (let length = 1 - STEP; ; length -= STEP) {
    const unit = new Float32Array(vector.length);
    let rounded = 0;
    for (let i = 0; i < vector.length; i++) {
      const component = fromHalfBits(toHalfBits(Math.round((vector[i] as number) * scale * length * GRID) / GRID));
      unit[i] = component;
      rounded += component * component;
    }
    if (rounded < 1) return unit;
  }
}

/**
 * Scales a vector to length 1. The rounded vectors of an embedder may be a thousandth shorter, which would change distances
 * and inner products. The zero vector stays zero. Throws at null: for providers that always get vectors.
 */
export function toUnit(vector: Vector): Float32Array {
  if (!vector) throw new TypeError('this provider requires a vector');
  const length = Math.sqrt(vector.reduce((sum, component) => sum + component * component, 0));
  return length === 0 ? vector : vector.map((component) => component / length);
}

/** Rarity of a term among one user's memories; positive even if every memory has the term. */
export const inverseDocumentFrequency = (memories: number, memoriesWithTerm: number): number =>
  Math.log(1 + (memories - memoriesWithTerm + 0.5) / (memoriesWithTerm + 0.5));

/** Resolution of scores in comparisons and responses: finer differences are rounding errors of the store. */
const RESOLUTION = 1e6;
export const roundScore = (score: number): number => Math.floor(score * RESOLUTION + 0.5) / RESOLUTION;

/**
 * Weights of one query: `score = vector·max(0, cosine) + keyword·coverage`. A query of stop words has no terms; hybrid mode
 * then uses the vector alone, so that a text equal to the query still scores 1.
 */
export function weights(ranking: RankingOptions, queryTerms: number): { vector: number; keyword: number } {
  if (ranking.mode === 'keyword') return { vector: 0, keyword: 1 };
  if (ranking.mode === 'vector' || queryTerms === 0) return { vector: 1, keyword: 0 };
  return { vector: 1 - ranking.keyword_weight, keyword: ranking.keyword_weight };
}

/** English function words, including question words, without apostrophes. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about above after again against all also am an and any are arent as at be because been before being below between
  both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each either else ever every
  few for from further get gets got had hadnt has hasnt have havent having he her here hers herself hes hid him himself
  his how however i id if ill im in into is isnt it itd itll its itself ive just let lets like may me might more most
  much must my myself neither nor of off on once one only or other our ours ourselves out over own per please quite
  rather re really s same shall she shes should shouldnt since so some such t than that thats the their theirs them
  themselves then there theres these they theyd theyll theyre theyve this those though through thus to too under until
  up upon us very via was wasnt we were werent weve what whats when whens where wheres which while who whom whos whose
  why will with within without wont would wouldnt yet you youd youll your youre yours yourself yourselves youve`.split(
    /\s+/,
  ),
);

/**
 * Irregular English words: a base and its other forms, so that the question "when did she run" finds "she ran". Without
 * forms that are more often another word (left, saw, lay, rose, ground, wound, bore).
 */
const FAMILIES = `become became|begin began begun|bend bent|bite bit bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|cling clung
creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten
fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|give gave given|go goes went gone|grow grew grown|hang hung|hear heard
hold held|keep kept|kneel knelt|know knew known|lead led|lean leant|learn learnt|leap leapt|lend lent|light lit
lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise risen|run ran|say said
see seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spell spelt
spend spent|spill spilt|spin spun|stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn
sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept|win won|write wrote written
child children|foot feet|goose geese|knife knives|man men|mouse mice|shelf shelves|tooth teeth|wife wives
wolf wolves|woman women`;

export const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  FAMILIES.split(/\n|\|/).flatMap((family) => {
    const [base = '', ...forms] = family.trim().split(' ');
    return forms.map((form): [string, string] => [form, base]);
  }),
);
