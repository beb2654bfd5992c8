import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { withoutDays } from '../support/context.ts';
import type { Operation } from './operations.ts';
import type { Answer, RankedHit, World } from './world.ts';

/** What two stores' scores of one memory may differ by. */
const SCORE_TOLERANCE = 1e-3;
/** Different texts this near to each other may change places: stores add up the same products in different orders. */
const NEAR_TIE = 1e-5;

type Explanation = NonNullable<RankedHit['explanation']>;

interface Context {
  readonly text: string;
  readonly token_count: number;
  readonly citations: readonly { readonly record: number; readonly score: number }[];
}

export interface Worlds {
  readonly model: World;
  readonly other: World;
}

/** Asserts that a store's answer is the model's answer, up to what ranking leaves open. */
export const expectAgreement = async (
  wanted: Operation,
  { model, other }: Worlds,
  expected: Answer,
  given: Answer,
): Promise<void> => {
  const can: Partial<Record<Operation['do'], boolean>> = {
    audit: other.audited,
    users: other.lists_users,
    stats: other.counted,
  };
  if (can[wanted.do] === false) {
    expect(given).toEqual({ status: 400, code: 'unsupported_capability' });
    return;
  }
  const searched = expected.status === 200 && (wanted.do === 'search' || wanted.do === 'context');
  if (!searched) {
    expect(given).toEqual(expected);
    return;
  }
  expect(given.status).toBe(expected.status);
  if (wanted.do === 'search') {
    const { truth } = await truthOf(wanted, wanted.query, { model, other });
    expectRanking(given.value as RankedHit[], truth, wanted);
  } else if (wanted.do === 'context') {
    const { query: q, ...rest } = wanted.fields;
    const { truth, same } = await truthOf(wanted, { q, ...rest }, { model, other });
    expectContext(given.value as Context, same ? (expected.value as Context) : undefined, truth);
  }
};

type Asked = Extract<Operation, { readonly do: 'search' | 'context' }>;

/**
 * What the store should find, best first. A backend that knows no scopes counts the rarity of terms over all the user's
 * memories, also for a caller who may see only some (Decision 21): there it is what that caller may see,
 * scored as for somebody who sees everything. `same`: whether that is what the model answered.
 */
const truthOf = async (
  { by, user, others = [], since, until }: Asked,
  query: { readonly q: string; readonly scope?: string },
  { model, other }: Worlds,
): Promise<{ truth: readonly RankedHit[]; same: boolean }> => {
  const ranking = async (caller: number) => {
    const rankings = [...new Set([user, ...others])].map((one) =>
      model.ranking(caller, one, { ...query, since, until }),
    );
    return (await Promise.all(rankings)).flat().sort((a, b) => b.score - a.score || b.record - a.record);
  };
  const visible = await ranking(by);
  if (other.native) return { truth: visible, same: true };
  const records = new Set(visible.map(({ record }) => record));
  const truth = (await ranking(0)).filter(({ record }) => records.has(record));
  return { truth, same: isDeepStrictEqual(truth, visible) };
};

/** Matches an explanation whose numbers differ no more than scores may. */
const nearly = ({ cosine = null, coverage = null, terms = [], weights }: Partial<Explanation> = {}) => ({
  cosine: cosine === null ? null : expect.closeTo(cosine, 2),
  coverage: coverage === null ? null : expect.closeTo(coverage, 2),
  terms,
  weights,
});

/** `truth` ranks everything the query can find; `given` must be its head. */
const expectRanking = (
  given: readonly RankedHit[],
  truth: readonly RankedHit[],
  asked: { readonly limit: number; readonly min_score?: number; readonly explain?: true | undefined },
): void => {
  const { limit, min_score = 0, explain } = asked;
  const byRecord = new Map(truth.map((hit) => [hit.record, hit]));
  const atLeast = (score: number) => truth.filter((hit) => hit.score >= score).length;
  expect(given.length).toBeGreaterThanOrEqual(
    Math.min(limit, atLeast(min_score === 0 ? 0 : min_score + SCORE_TOLERANCE)),
  );
  expect(given.length).toBeLessThanOrEqual(Math.min(limit, atLeast(min_score - SCORE_TOLERANCE)));

  const contents = new Map<unknown, number>();
  given.forEach((hit, place) => {
    const known = byRecord.get(hit.record);
    expect(hit.memory).toEqual(known?.memory);
    expect(hit.explanation).toEqual(explain && nearly(known?.explanation));
    const score = known?.score ?? Number.NaN;
    expect(Math.abs(hit.score - score), `score of ${hit.record}`).toBeLessThanOrEqual(SCORE_TOLERANCE);
    expect(Math.abs(hit.score - (truth[place]?.score ?? Number.NaN)), `place ${place}`).toBeLessThanOrEqual(
      SCORE_TOLERANCE,
    );
    const before = given[place - 1];
    if (before === undefined) return;
    expect(before.score, 'highest first').toBeGreaterThanOrEqual(hit.score);
    if (before.score === hit.score) expect(before.record, 'equal scores: newest first').toBeGreaterThan(hit.record);
    expect((byRecord.get(before.record)?.score ?? Number.NaN) + NEAR_TIE, 'order').toBeGreaterThanOrEqual(score);
  });
  for (const { memory, score } of given) {
    const { content, user_id } = memory as { content: string; user_id: string };
    const key = `${user_id} ${content}`;
    expect(contents.get(key) ?? score, 'equal texts of a user, equal scores').toBe(score);
    contents.set(key, score);
  }
};

/** Without `expected`, only what the truth alone tells: which memories, in which order, at which score. */
const expectContext = (given: Context, expected: Context | undefined, truth: readonly RankedHit[]): void => {
  const cited = (context: Context) => context.citations.map(({ record }) => record);
  const order = (context: Context) => ({
    text: withoutDays(context.text),
    token_count: context.token_count,
    cited: cited(context),
  });
  const nearTie = truth.some((hit, place) => {
    const gap = place === 0 ? 1 : (truth[place - 1]?.score ?? 1) - hit.score;
    return gap > 0 && gap <= NEAR_TIE;
  });
  if (expected && !nearTie) expect(order(given)).toEqual(order(expected));
  given.citations.forEach(({ record, score }, place) => {
    const known = truth.find((hit) => hit.record === record)?.score ?? Number.NaN;
    expect(Math.abs(score - known)).toBeLessThanOrEqual(SCORE_TOLERANCE);
    expect(given.citations[place - 1]?.score ?? 1, 'best first').toBeGreaterThanOrEqual(score);
  });
};
