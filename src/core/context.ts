import { type Call, isUntrusted, type SearchHit } from '#contract';
import { openThread } from '#ranking';
import type { Lines, LinesRequest } from './context-lines.ts';
import { withoutCopies } from './copies.ts';
import { type Currency, currentHits, type MarkedHit } from './current.ts';

/** The encoding of `token_budget` and `token_count`. */
export const TOKEN_ENCODING = 'o200k_base';

/** The memory of a line. */
export interface Citation {
  readonly memory_id: string;
  readonly score: number;
  /** Ids of other memories with the same text. */
  readonly 'x-copies'?: readonly string[];
}

export interface ContextBlock {
  readonly text: string;
  readonly citations: Citation[];
  readonly token_count: number;
}

export interface ContextOptions {
  /** Maximum tokens. */
  readonly budget: number;
  /** Hits with a lower score are left out; by default `MIN_SIMILARITY` with vector search. */
  readonly min_score?: number | undefined;
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
 * The best hits as numbered lines in a fence, within the budget. Leaves out memories that are not current among the hits, or
 * that are too long. Copies share a line.
 */
export async function toContext(
  hits: readonly SearchHit[],
  { budget, min_score = 0 }: ContextOptions,
  currency: Currency,
  call: Call,
): Promise<ContextBlock> {
  let characters = MAX_CHARACTERS;
  const found = currentHits(hits, currency).filter(({ score }) => score > 0 && score >= min_score);
  const candidates = withoutCopies(found).filter(({ memory: { content } }) => {
    if (content.length > Math.min(characters, budget * LONGEST_TOKEN)) return false;
    characters -= content.length;
    return true;
  });
  if (candidates.length === 0) return { text: '', citations: [], token_count: 0 };
  const memories = candidates.map(({ memory }) => {
    const { content, created_at, source } = memory;
    return { content, created_at, source, untrusted: isUntrusted(memory) };
  });
  const { text, token_count, positions } = await thread.ask({ memories, budget }, call);
  const citations = positions.map((position) => {
    const { memory, score, copies } = candidates[position] as MarkedHit;
    return { memory_id: memory.id, score, ...(copies && { 'x-copies': copies }) };
  });
  return { text, citations, token_count };
}
