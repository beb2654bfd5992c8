import { type Call, isUntrusted, type SearchHit } from '#contract';
import { openThread } from '#ranking';
import type { Lines, LinesRequest } from './context-lines.ts';
import { type Currency, currentHits } from './current.ts';
import { type NamedTime, nearnessFactor } from './named-times.ts';
import { ageFactor, weighted } from './said.ts';

/** The encoding of `token_budget` and `token_count`. */
export const TOKEN_ENCODING = 'o200k_base';

export interface ContextBlock {
  readonly text: string;
  readonly citations: { memory_id: string; score: number }[];
  readonly token_count: number;
}

export interface ContextOptions {
  /** Maximum tokens. */
  readonly budget: number;
  /** Hits with a lower score are left out; by default `MIN_SIMILARITY` with vector search. */
  readonly min_score?: number | undefined;
  /** Days after which a memory has lost half of what age may take from its score; unset: age takes nothing. */
  readonly half_life_days?: number | undefined;
  /** Times that the query names: what was said then is preferred. */
  readonly times?: readonly NamedTime[];
}

/**
 * In the evaluation set (`npm run eval`), 1.1 % of the relevant memories score lower, and 44 % of the hits for a question
 * without a relevant memory. Keyword search alone has no such minimum: every hit shares a word with the query, and a long
 * query makes all scores low.
 */
export const MIN_SIMILARITY = 0.1;

/** The longest token: 128 blanks. */
const LONGEST_TOKEN = 128;
/** Maximum characters of all candidates of one block: about a million tokens. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** Counting is expensive and the tokenizer's tables are large, so the thread starts with the first block. */
const thread = openThread<LinesRequest, Lines>(
  '#context-worker',
  (cause) => new Error('the thread that counts tokens died', { cause }),
);

/**
 * The best hits as numbered lines in a fence, within the budget, with citations in the order of the lines. Leaves out memories that
 * are not current among the hits, or that are too long.
 */
export async function toContext(
  hits: readonly SearchHit[],
  { budget, min_score = 0, half_life_days, times = [] }: ContextOptions,
  currency: Currency,
  call: Call,
): Promise<ContextBlock> {
  let characters = MAX_CHARACTERS;
  const found = currentHits(hits, currency).filter(({ memory: { content }, score }) => {
    if (score === 0 || score < min_score) return false;
    if (content.length > Math.min(characters, budget * LONGEST_TOKEN)) return false;
    characters -= content.length;
    return true;
  });
  const aged = half_life_days === undefined ? found : weighted(found, ageFactor(half_life_days, currency.now));
  const candidates = times.length === 0 ? aged : weighted(aged, nearnessFactor(times));
  if (candidates.length === 0) return { text: '', citations: [], token_count: 0 };
  const memories = candidates.map(({ memory }) => {
    const { id, user_id, content, created_at, valid_from, source } = memory;
    return { id, user_id, content, created_at, valid_from, source, untrusted: isUntrusted(memory) };
  });
  const { text, token_count, positions } = await thread.ask({ memories, budget }, call);
  const citations = positions.map((position) => {
    const { memory, score } = candidates[position] as SearchHit;
    return { memory_id: memory.id, score };
  });
  return { text, citations, token_count };
}
