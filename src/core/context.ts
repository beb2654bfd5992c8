import type { SearchHit } from '#contract';

/** The encoding that `token_budget` and `token_count` are counted in. */
export const TOKEN_ENCODING = 'o200k_base';

export interface ContextBlock {
  readonly text: string;
  readonly citations: { memory_id: string; score: number }[];
  readonly token_count: number;
}

/** Special tokens written in a memory are plain text here. */
const PLAIN = { disallowedSpecial: new Set<string>() };

/**
 * The tokenizer takes quadratic time on a run without a break: 40,000 equal letters hold up everybody for seconds. Text
 * that people wrote has no such runs, so what has one is treated as too long for any budget.
 */
const ENDLESS = /[\p{L}\p{M}]{2000}|[^\p{L}\p{N}\s]{2000}/u;

/**
 * The best hits as numbered lines, at most `budget` tokens. Expired memories and memories superseded by another hit
 * are left out, and so is a line that does not fit: a shorter one further down may.
 */
export async function toContext(hits: readonly SearchHit[], budget: number, now: Date): Promise<ContextBlock> {
  // The tokenizer's tables are large; they are loaded by the first request that needs them.
  const { countTokens, isWithinTokenLimit } = await import('gpt-tokenizer/encoding/o200k_base');
  const time = now.toISOString();
  const superseded = new Set(hits.flatMap(({ memory }) => memory.supersedes.filter((id) => id !== memory.id)));
  const lines: string[] = [];
  const citations: ContextBlock['citations'] = [];
  let left = budget;
  for (const { memory, score } of hits) {
    if (left <= 0) break;
    if (score === 0 || superseded.has(memory.id) || (memory.valid_to !== null && memory.valid_to < time)) continue;
    const line = `[${lines.length + 1}] ${memory.content.replace(/\s+/g, ' ').trim()}`;
    const tokens = !ENDLESS.test(line) && isWithinTokenLimit(`${line}\n`, left, PLAIN);
    if (tokens === false) continue;
    lines.push(line);
    citations.push({ memory_id: memory.id, score });
    left -= tokens;
  }
  // Tokens may merge or split where lines meet, so the whole is counted once more and has the last word.
  for (;;) {
    const text = lines.join('\n');
    const token_count = text === '' ? 0 : countTokens(text, PLAIN);
    if (token_count <= budget) return { text, citations, token_count };
    lines.pop();
    citations.pop();
  }
}
