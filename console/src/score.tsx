import type { Explanation } from '../../clients/typescript/src/index.ts';

/** What a score is made of. */
export function Parts({ cosine, coverage, weights, store, store_weight = 1 }: Explanation) {
  const sum = [
    ...(cosine === null ? [] : [`${weights.vector} × meaning ${cosine.toFixed(3)}`]),
    ...(coverage === null ? [] : [`${weights.keyword} × words ${coverage.toFixed(3)}`]),
  ].join(' + ');
  return (
    <>
      {store && <span class="mark">{store}</span>}
      <span class="parts">{store_weight === 1 ? sum : `${store_weight} × (${sum})`}</span>
    </>
  );
}

/** Characters at the end of a word that may differ from the query's, such as a plural. */
const ENDING = 3;

/** The words of the text that the query has, in another form too. */
export function Marked({ text, terms }: { text: string; terms: readonly string[] }) {
  const stems = terms.map((term) => {
    const word = term.toLowerCase();
    return word.slice(0, Math.max(3, word.length - ENDING));
  });
  return (
    <>
      {text.split(/(\p{L}[\p{L}\p{N}]*|\p{N}+)/u).map((word, n) =>
        // Every second piece is a word.
        n % 2 === 1 && stems.some((stem) => word.toLowerCase().startsWith(stem)) ? <mark key={n}>{word}</mark> : word,
      )}
    </>
  );
}
