import type { Call, Memory, SearchHit } from '#contract';
import { openThread } from '#ranking';
import type { Lines, Wanted } from './context-lines.ts';

/** The encoding that `token_budget` and `token_count` are counted in. */
export const TOKEN_ENCODING = 'o200k_base';

export interface ContextBlock {
  readonly text: string;
  readonly citations: { memory_id: string; score: number }[];
  readonly token_count: number;
}

export interface ContextOptions {
  /** Most tokens. */
  readonly budget: number;
  /** Hits that score lower are left out; by default `MIN_SIMILARITY` where vectors are searched. */
  readonly min_score?: number | undefined;
}

/**
 * In the evaluation set (`npm run eval`) 1.1 % of the memories that answer a question score lower, and 44 % of what is
 * found for a question that another user's memories answer. Where words alone are searched every hit shares one, and a
 * long query makes all scores low: there is no such floor.
 */
export const MIN_SIMILARITY = 0.1;

/** No token is longer: 128 blanks. */
const LONGEST_TOKEN = 128;
/** Characters of all memories that are looked at for one block: what a million tokens hold. */
const MOST_CHARACTERS = 4 * 1024 * 1024;

/** Counting is costly, and the tokenizer's tables are large: they are loaded by the first block that needs them. */
const thread = openThread<Wanted, Lines>(
  '#context-worker',
  (cause) => new Error('the thread that counts tokens died', { cause }),
);

/**
 * The best hits as numbered lines within the budget. Left out are memories that are not valid now and those that another
 * hit supersedes, and what is too long to fit.
 */
export async function toContext(
  hits: readonly SearchHit[],
  { budget, min_score = 0 }: ContextOptions,
  now: Date,
  call: Call,
): Promise<ContextBlock> {
  const time = now.toISOString();
  const begun = hits.filter(({ memory }) => memory.valid_from === null || memory.valid_from <= time);
  const superseded = supersededAmong(begun.map(({ memory }) => memory));
  let characters = MOST_CHARACTERS;
  const candidates = begun.filter(({ memory, score }) => {
    const { id, content, valid_to } = memory;
    if (score === 0 || score < min_score || superseded.has(id) || (valid_to !== null && valid_to < time)) return false;
    if (content.length > Math.min(characters, budget * LONGEST_TOKEN)) return false;
    characters -= content.length;
    return true;
  });
  if (candidates.length === 0) return { text: '', citations: [], token_count: 0 };
  const contents = candidates.map(({ memory }) => memory.content);
  const { text, token_count, taken } = await thread.ask({ contents, budget }, call);
  const citations = taken.map((position) => {
    const { memory, score } = candidates[position] as SearchHit;
    return { memory_id: memory.id, score };
  });
  return { text, citations, token_count };
}

/** Of memories that supersede each other, directly or through others, the newest is not superseded by them. */
function supersededAmong(memories: readonly Memory[]): ReadonlySet<string> {
  const byId = new Map(memories.map((memory) => [memory.id, memory]));
  /** All that a memory supersedes, directly or through others. */
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
      if (!next || found.has(id)) continue;
      found.add(id);
      open.push(next);
    }
  }
  return found;
}

const isBefore = (a: Memory, b: Memory): boolean =>
  a.created_at < b.created_at || (a.created_at === b.created_at && a.id < b.id);
