import type { Call, Memory, SearchHit } from '#contract';
import { openThread } from '#ranking';
import type { Lines, Wanted } from './context-lines.ts';

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
const thread = openThread<Wanted, Lines>(
  '#context-worker',
  (cause) => new Error('the thread that counts tokens died', { cause }),
);

/**
 * The best hits as numbered lines in a fence, within the budget. Leaves out memories that are not valid at `now`, that another hit
 * supersedes, or that are too long.
 */
export async function toContext(
  hits: readonly SearchHit[],
  { budget, min_score = 0 }: ContextOptions,
  now: Date,
  call: Call,
): Promise<ContextBlock> {
  const time = now.toISOString();
  const started = hits.filter(({ memory }) => memory.valid_from === null || memory.valid_from <= time);
  const superseded = supersededAmong(started.map(({ memory }) => memory));
  let characters = MAX_CHARACTERS;
  const candidates = started.filter(({ memory, score }) => {
    const { id, content, valid_to } = memory;
    if (score === 0 || score < min_score || superseded.has(id) || (valid_to !== null && valid_to < time)) return false;
    if (content.length > Math.min(characters, budget * LONGEST_TOKEN)) return false;
    characters -= content.length;
    return true;
  });
  if (candidates.length === 0) return { text: '', citations: [], token_count: 0 };
  const memories = candidates.map(({ memory: { content, created_at, source } }) => ({ content, created_at, source }));
  const { text, token_count, taken } = await thread.ask({ memories, budget }, call);
  const citations = taken.map((position) => {
    const { memory, score } = candidates[position] as SearchHit;
    return { memory_id: memory.id, score };
  });
  return { text, citations, token_count };
}

/** Ids of memories that others of the same user supersede. In a cycle, the newest memory counts as not superseded. */
function supersededAmong(memories: readonly Memory[]): ReadonlySet<string> {
  const byId = new Map(memories.map((memory) => [memory.id, memory]));
  /** All memories that a memory supersedes, directly or indirectly. */
  const reach = new Map(memories.map((memory) => [memory.id, reachable(memory, byId)]));
  const reaches = (from: Memory, to: Memory) => reach.get(from.id)?.has(to.id) === true;
  const isSuperseded = (memory: Memory) =>
    memories.some((other) => reaches(other, memory) && (!reaches(memory, other) || isBefore(memory, other)));
  return new Set(memories.filter(isSuperseded).map(({ id }) => id));
}

function reachable(start: Memory, byId: ReadonlyMap<string, Memory>): Set<string> {
  const found = new Set<string>();
  const open = [start];
  for (let memory = open.pop(); memory; memory = open.pop()) {
    for (const id of memory.supersedes) {
      const next = byId.get(id);
      if (next?.user_id !== start.user_id || found.has(id)) continue;
      found.add(id);
      open.push(next);
    }
  }
  return found;
}

const isBefore = (a: Memory, b: Memory): boolean =>
  a.created_at < b.created_at || (a.created_at === b.created_at && a.id < b.id);
