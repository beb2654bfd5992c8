import { type Call, type Log, MAX_BATCH_SIZE } from '#contract';
import { openAuditQueue } from '../src/core/audit-queue.ts';
import { ANONYMOUS } from '../src/core/grants.ts';
import type { Store } from '../src/core/store.ts';
import { importMemories } from '../src/features/transfer/export.ts';
import { createGate } from '../src/verbs/gate.ts';
import { context } from '../src/verbs/search.ts';
import type { Conversations, Turn } from './dataset.ts';
import { table } from './report.ts';

/** Token budgets of the contexts. */
const BUDGETS = [500, 1_000, 2_000] as const;
const DAY_MS = 86_400_000;

/** The keys of the turns that the context of a question cites, in order, for each budget. */
export type Cited = readonly (readonly string[])[];

/**
 * Stores the turns in an empty store, with their times, and asks for the context of every question, a day after the last turn of its
 * user if it has no time of its own. In order.
 */
export async function askContexts(
  store: Store,
  { facts, questions }: Conversations,
  log: Log,
  call: Call,
): Promise<Cited[]> {
  const auditQueue = openAuditQueue({ audit: undefined, record: 'all', log });
  const gate = createGate({ store, auditQueue, log, max_record_bytes: 1e9, rate_limit_per_minute: null });
  const session = gate.session(ANONYMOUS, 'http');
  for (let start = 0; start < facts.length; start += MAX_BATCH_SIZE) {
    const memories = facts.slice(start, start + MAX_BATCH_SIZE).map(toMemory);
    const { results } = await session.run(importMemories, { memories }, call);
    const failed = results.find((result) => result.outcome !== 'stored');
    if (failed) throw new Error(`A turn was not stored: ${JSON.stringify(failed)}`);
  }
  const lastTurns = new Map<string, number>();
  for (const { user, at } of facts) lastTurns.set(user, Math.max(lastTurns.get(user) ?? 0, Date.parse(at)));
  const contexts: Cited[] = [];
  for (const { question, user, now = new Date((lastTurns.get(user) ?? 0) + DAY_MS).toISOString() } of questions) {
    const cited: string[][] = [];
    for (const token_budget of BUDGETS) {
      const { citations } = await session.run(context, { query: question, user_id: user, token_budget, now }, call);
      cited.push(citations.flatMap(({ memory_id, 'x-copies': copies = [] }) => [memory_id, ...copies]));
    }
    contexts.push(cited);
  }
  return contexts;
}

const toMemory = ({ key, user, content, ref, at }: Turn) => ({
  id: key,
  user_id: user,
  content,
  source: { app: 'chat', ref },
  created_at: at,
  valid_from: at,
});

type AskedQuestion = Conversations['questions'][number];

/** A question, and what its contexts hold of the evidence. */
export interface ContextResult extends AskedQuestion {
  readonly backend: string;
  /** Every second conversation belongs to the second one. */
  readonly half: 'first' | 'second';
  /** Share of the evidence in the context, and the evidence that it lacks; by budget. */
  readonly recall: readonly number[];
  readonly missing: readonly (readonly string[])[];
}

export function contextResults(
  backend: string,
  { facts, questions }: Conversations,
  contexts: readonly Cited[],
): ContextResult[] {
  const users = [...new Set(facts.map(({ user }) => user))];
  return questions.map((question, index) => {
    const { user, evidence } = question;
    const missing = (contexts[index] as Cited).map((cited) => evidence.filter((key) => !cited.includes(key)));
    const recall = missing.map(({ length }) => 1 - length / evidence.length);
    const half = users.indexOf(user) % 2 === 0 ? 'first' : 'second';
    return { backend, half, ...question, recall, missing };
  });
}

/** Recall at each budget, over all questions, by half, and by kind. */
export function contextReport(results: readonly ContextResult[]): string {
  const row = (label: string, own: readonly ContextResult[]): [string, ...number[]] => [
    `${label} (${own.length})`,
    ...BUDGETS.map((_, at) => own.reduce((sum, { recall }) => sum + (recall[at] as number), 0) / own.length),
  ];
  const groups = [(one: ContextResult) => `${one.half} half`, (one: ContextResult) => one.kind].flatMap((labelOf) =>
    [...new Set(results.map(labelOf))].map((label) =>
      row(
        label,
        results.filter((one) => labelOf(one) === label),
      ),
    ),
  );
  return table(
    [`context, ${results[0]?.backend}`, ...BUDGETS.map((budget) => `${budget} tokens`)],
    [row('all', results), ...groups],
  );
}
