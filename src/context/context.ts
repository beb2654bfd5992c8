import { type Call, isUntrusted, type SearchHit } from '#contract';
import { conversationOf, openThread } from '#toolbox';
import { type Currency, currentAmong, currentHits } from '../core/current-memories.ts';
import { ageFactor, weighted } from './age.ts';
import {
  anchorsOf,
  type ConversationOf,
  type Conversations,
  type Explanation,
  explainPlace,
  type RankedHit,
  rankByConversation,
} from './conversations.ts';
import type { Lines, LinesRequest } from './lines.ts';
import { type NamedTime, nearnessFactor } from './named-times.ts';
import { withoutCopies } from './without-copies.ts';

/** The memory of a line. */
interface Citation {
  readonly memory_id: string;
  readonly score: number;
  /** Ids of other memories with the same text. */
  readonly 'x-copies'?: readonly string[];
  readonly explanation?: Explanation;
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
  /** Days after which a memory has lost half of what age may take from its score; unset: age takes nothing. */
  readonly half_life_days?: number | undefined;
  /** Times that the query names: what was said then is preferred. */
  readonly times?: readonly NamedTime[];
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
 * The best hits and their neighbours as numbered lines in a fence, within the budget, with citations in the order of the lines. Leaves
 * out memories that are not current among these, or that are too long. Copies share a line.
 */
export async function toContext(
  hits: readonly SearchHit[],
  options: ContextOptions,
  currency: Currency,
  call: Call,
): Promise<ContextBlock> {
  let characters = MAX_CHARACTERS;
  const { budget, conversations, explain } = options;
  const ranked = await inConversations(hits, options, currency);
  const candidates = withoutCopies(ranked).filter(({ memory: { content } }) => {
    if (content.length > Math.min(characters, budget * LONGEST_TOKEN)) return false;
    characters -= content.length;
    return true;
  });
  if (candidates.length === 0) return { text: '', citations: [], token_count: 0 };
  const memories = candidates.map(({ memory }) => {
    const { id, user_id, scope, content, created_at, valid_from, source } = memory;
    return { id, user_id, scope, content, created_at, valid_from, source, untrusted: isUntrusted(memory) };
  });
  const { text, token_count, positions } = await thread.ask({ memories, budget }, call);
  const citations = positions.map((position) => {
    const hit = candidates[position] as RankedHit;
    const { memory, score, copies } = hit;
    const explanation = explain && explainPlace(hit, conversations);
    return { memory_id: memory.id, score, ...(copies && { 'x-copies': copies }), ...(explanation && { explanation }) };
  });
  return { text, citations, token_count };
}

/** The hits that count, ranked by the times that matter and with their neighbours. */
async function inConversations(
  hits: readonly SearchHit[],
  { min_score = 0, half_life_days, times = [], conversations }: ContextOptions,
  currency: Currency,
): Promise<RankedHit[]> {
  const of: ConversationOf = (memory) => (conversations?.isAble(memory) ? conversationOf(memory) : undefined);
  const counts = ({ score }: SearchHit) => score > 0 && score >= min_score;
  const scored = currentHits(hits, currency).filter(counts);
  const aged = half_life_days === undefined ? scored : weighted(scored, ageFactor(half_life_days, currency.now));
  const found = times.length === 0 ? aged : weighted(aged, nearnessFactor(times));
  const anchors = anchorsOf(found, of);
  const near = anchors.length > 0 ? await conversations?.neighbours(anchors) : undefined;
  if (!near) return rankByConversation(found, [], of);
  // A neighbour ends no hit: it may not be in the block itself.
  const isCurrent = currentAmong([...hits.map(({ memory }) => memory), ...near], currency);
  // Times leave out nothing that the search found.
  const isKept = (hit: RankedHit) => hit.reasons.search !== null || counts(hit);
  return rankByConversation(found, near.filter(isCurrent), of).filter(isKept).slice(0, MAX_CANDIDATES);
}
