import { isUntrusted, type SearchHit } from '#contract';
import { newestFirst } from '#toolbox';
import type { MarkedHit } from '../core/current-memories.ts';
import { saidAt } from './age.ts';

/**
 * One hit for each text of a user (Decision 58): the newest memory with it, in the place and with the score of the best. A memory
 * of an untrusted key stands for no other one.
 */
export function withoutCopies<Hit extends MarkedHit>(hits: readonly Hit[]): Hit[] {
  const groups = new Map<string, Hit[]>();
  for (const hit of hits) {
    // Neither a user id nor a text has a NUL.
    const key = `${hit.memory.user_id}\0${normalised(hit.memory.content)}`;
    const group = groups.get(key);
    if (group) group.push(hit);
    else groups.set(key, [hit]);
  }
  return [...groups.values()].map((group) => {
    const [best] = group as [Hit];
    if (group.length === 1) return best;
    const [{ memory, superseded_by }, ...others] = group.toSorted(trustedAndNewestFirst) as [Hit, ...Hit[]];
    return { ...best, memory, superseded_by, copies: others.map(({ memory }) => memory.id) };
  });
}

const trustedAndNewestFirst = ({ memory: a }: SearchHit, { memory: b }: SearchHit): number =>
  Number(isUntrusted(a)) - Number(isUntrusted(b)) || -compare(saidAt(a), saidAt(b)) || newestFirst(a, b);
const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);

/** A longer text is a copy only of the same text: 100 of this length take at most 40 ms, of nothing but combining marks 170 ms. */
const MAX_LENGTH = 2_000;

/**
 * Two texts that are the same in this form say the same. Nothing looser is safe: in test/context/without-copies.test.ts texts that say
 * something else share up to 93 % of their trigrams, and copies with a small edit as little as 71 %.
 *
 * The case of a word counts, but for a capital at the beginning of the text: `US` is not `us`, and a password may be `Anna`. Symbols at
 * the end count too, as in `C#`, `50%` and `6"`.
 */
function normalised(text: string): string {
  if (text.length > MAX_LENGTH) return text;
  // 10⁵ is not 105.
  const composed = text.replace(/\P{No}+/gu, (run) => run.normalize('NFKC'));
  // Some characters become eighteen.
  if (composed.length > 2 * MAX_LENGTH) return text;
  const form = composed
    .replace(/[\p{Pd}\u2212]/gu, '-')
    .replace(/[‘’‚‛`]/gu, "'")
    .replace(/[“”„‟«»]/gu, '"')
    .replace(/\s+/gu, ' ')
    .trim()
    .replace(/^["']?\p{Lu}[\p{Ll}\p{M}]*(?![\p{L}\p{M}\p{N}])/u, (word) => word.toLowerCase());
  const end = withoutEnd(form);
  const isQuoted = /^["']/u.test(end) && end.length > 2 && end.at(-1) === end[0];
  return (isQuoted ? withoutEnd(end.slice(1, -1)) : end) || form;
}

/** Without the punctuation that ends a sentence, but for a question mark; an exclamation mark after a digit may be part of a password. */
function withoutEnd(text: string): string {
  let end = text.length;
  while (end > 0 && ' .,;:!。'.includes(text.charAt(end - 1))) end -= 1;
  return /^\d!/.test(text.slice(Math.max(end - 1, 0))) ? text : text.slice(0, end);
}
