import { type Call, isUntrusted, type SearchHit } from '#contract';
import { openThread } from '#ranking';
import { conversationOf } from '#toolbox';
import type { Lines, LinesRequest } from './context-lines.ts';
import {
  anchorsOf,
  type ConversationOf,
  type Conversations,
  type Explanation,
  explainPlace,
  type RankedHit,
  rankByConversation,
} from './conversations.ts';
import { type Currency, currentAmong, currentHits } from './current.ts';

/** The encoding of `token_budget` and `token_count`. */
export const TOKEN_ENCODING = 'o200k_base';

export interface ContextBlock {
  readonly text: string;
  readonly citations: { memory_id: string; score: number; explanation?: Explanation }[];
  readonly token_count: number;
}

export interface ContextOptions {
  /** Maximum tokens. */
  readonly budget: number;
  /** Hits with a lower score are left out; by default `MIN_SIMILARITY` with vector search. */
  readonly min_score?: number | undefined;
  /** Undefined: the store cannot find neighbours. */
  readonly conversations?: Conversations | undefined;
  /** Whether each citation has an `explanation`. */
  readonly explain?: boolean;
}

/**
 * In the evaluation set (`npm run eval`), 1.1 % of the relevant memories score lower, and 44 % of the hits for a question
 * without a relevant memory. Keyword search alone has no such minimum: every hit shares a word with the query, and a long
 * query makes all scores low.
 */
export const MIN_SIMILARITY = 0.1;

/** The longest token: 128 blanks. */
const LONGEST_TOKEN = 128;
/** Maximum candidates of one block: as many as a search finds. */
const MAX_CANDIDATES = 100;
/** Maximum characters of all candidates of one block: about a million tokens. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** Counting is expensive and the tokenizer's tables are large, so the thread starts with the first block. */
const thread = openThread<LinesRequest, Lines>(
  '#context-worker',
  (cause) => new Error('the thread that counts tokens died', { cause }),
);

/**
 * The best hits and their neighbours as numbered lines in a fence, within the budget. Leaves out memories that are not current among
 * these, or that are too long.
 */
export async function toContext(
  hits: readonly SearchHit[],
  { budget, min_score = 0, conversations, explain }: ContextOptions,
  currency: Currency,
  call: Call,
): Promise<ContextBlock> {
  let characters = MAX_CHARACTERS;
  const scored = ({ score }: SearchHit) => score > 0 && score >= min_score;
  const ranked = await inConversations(hits, currency, scored, conversations);
  const candidates = ranked.filter(({ memory: { content } }) => {
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
    const ranked = candidates[position] as RankedHit;
    const { memory, score } = ranked;
    return { memory_id: memory.id, score, ...(explain && { explanation: explainPlace(ranked, conversations) }) };
  });
  return { text, citations, token_count };
}

/** The hits that count, ranked with their neighbours. */
async function inConversations(
  hits: readonly SearchHit[],
  currency: Currency,
  counts: (hit: SearchHit) => boolean,
  conversations: Conversations | undefined,
): Promise<RankedHit[]> {
  const of: ConversationOf = (memory) => (conversations?.isAble(memory) ? conversationOf(memory) : undefined);
  const found = currentHits(hits, currency).filter(counts);
  const anchors = anchorsOf(found, of);
  const near = anchors.length > 0 ? await conversations?.neighbours(anchors) : undefined;
  if (!near) return rankByConversation(found, [], of);
  const isCurrent = currentAmong([...hits.map(({ memory }) => memory), ...near], currency);
  const current = found.filter(({ memory }) => isCurrent(memory));
  return rankByConversation(current, near.filter(isCurrent), of).filter(counts).slice(0, MAX_CANDIDATES);
}
