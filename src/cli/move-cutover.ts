import { setTimeout } from 'node:timers/promises';
import { replaceFile } from '../move/export-file.ts';
import { differenceText, sideOf, touchedSide } from '../move/follow.ts';
import type { GatewayStore } from '../move/store.ts';
import { type Comparison, compare, compareQueries, type QueryResult, type Side } from '../move/verify.ts';
import {
  applyNext,
  type Counts,
  canFreeze,
  countsByUser,
  endOfFeed,
  type Following,
  hasFeed,
  placeOf,
  reconcile,
} from './move-following.ts';
import type { Run } from './move-run.ts';
import { memories, number } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';
import { explainError, printable } from './terminal.ts';

/** Queries that are compared. */
const QUERIES = 10;
/** Rounds before the freeze over a source without a feed, until nothing differs. */
const ROUNDS = 5;
/** Maximum changes of a page, and memories to compare, that are left for the freeze. */
const LITTLE = 20;
/** Pages at the end of the feed after which it goes on whatever is left: a store may be written faster than that. */
const MAX_PAGES = 5;
/** Milliseconds that the source stays frozen while an open transaction holds back its feed. */
const HELD_MS = 30_000;
const LOOK_MS = 50;
/** Reasons, and differences, that are named. */
const MAX_NAMED = 20;

/** What a person can file. It has no contents. */
interface Report {
  readonly from: string;
  readonly to: string;
  readonly finished_at: string;
  readonly verified: boolean;
  /** Why not. */
  readonly reasons: readonly string[];
  /** From the request to freeze until B had everything and was compared. Null: the source cannot be frozen. */
  readonly freeze: { readonly since: string; readonly milliseconds: number; readonly changes_applied: number } | null;
  readonly changes_applied: number;
  /** All memories, before the freeze. What differed then was still under way, and was compared again. */
  readonly before_freeze: Pick<Comparison, 'counts' | 'hashes' | 'different'>;
  /** What changed since then, or all if the source has no feed. */
  readonly frozen: Pick<Comparison, 'counts' | 'hashes' | 'different'> | null;
  /** In the freeze, by the lists of users; null: a store has none. */
  readonly users: { readonly count: number; readonly memories: readonly [number, number] } | null;
  readonly queries: {
    readonly overlap: number | null;
    readonly least: number;
    readonly results: readonly QueryResult[];
  };
}

/** Freezes the source, applies the rest, verifies, and says what to do. Returns the exit status. */
export async function cutOver(
  names: readonly [string, string],
  following: Following,
  request: StoreRequest,
  run: Run,
): Promise<number> {
  const { source, target, state, rejected, users } = following;
  // Throws before anything else if the key may not freeze.
  const present = canFreeze(source) ? await source.client.frozen() : { since: null };
  const isOthers = present.since !== null && !state.froze;
  const before = await approach(following);
  if (rejected.size > 0) {
    run.end();
    for (const [id, reason] of [...rejected].slice(0, MAX_NAMED))
      run.say(`rejected ${printable(id)}: ${printable(reason)}`);
    throw new Error(`${target.name} rejected ${memories(rejected.size)}; nothing was frozen`);
  }
  const started = performance.now();
  const appliedBefore = following.applied;
  try {
    let since: string | null = null;
    if (canFreeze(source)) {
      state.froze = !isOthers;
      await following.save();
      since = (await source.client.freeze()).since;
      run.say(`${source.name} is frozen: changes answer 503, reads go on.`);
    }
    if (since !== null && state.cursor !== null) await drain(following);
    const verified = await verifyAll(following, before, request);
    const milliseconds = Math.round(performance.now() - started);
    const report: Report = {
      ...{ from: source.name, to: target.name, finished_at: new Date().toISOString() },
      ...{
        verified: verified.reasons.length === 0,
        freeze: since === null ? null : { since, milliseconds, changes_applied: following.applied - appliedBefore },
      },
      ...{ changes_applied: following.applied, before_freeze: summary(before), ...verified },
    };
    const file = (request.values.report as string | undefined) ?? 'omp-migrate-report.json';
    await replaceFile(file, report, 2);
    run.end();
    if (request.values.json) run.terminal.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    if (!report.verified) throw new Error(`the stores differ (${file} has the report): ${report.reasons.join('; ')}`);
    // For the way back: what changes in the target from now on.
    const cursor = hasFeed(target) ? await endOfFeed(target, following.signal) : null;
    const back = placeOf([names[1], names[0]], users, request);
    await back.write({ cursor, copying: null, mirror: false, froze: false });
    if (!request.values.json) run.terminal.stdout.write(outcomeText(report, file, names));
    return 0;
  } catch (error) {
    if (state.froze) await thaw(following, run);
    throw error;
  }
}

async function thaw(following: Following, run: Run): Promise<void> {
  const { source, state } = following;
  run.end();
  try {
    await source.client.unfreeze();
    state.froze = false;
    await following.save();
    run.say(`${source.name} takes changes again.`);
  } catch (error) {
    run.say(`${source.name} may still be frozen (${explainError(error)}); run: omp-gateway unfreeze ${source.name}`);
  }
}

/** Brings the target so close that little is left for the freeze. */
async function approach(following: Following) {
  const { source, target, users, signal } = following;
  following.touched = { ids: new Set(), users: new Set() };
  let result = await reconcile(following, QUERIES);
  if (following.state.cursor === null) {
    for (let round = 1; result.different > 0 && round < ROUNDS; round++) result = await reconcile(following, QUERIES);
    return result;
  }
  for (let [round, before] = [0, Number.POSITIVE_INFINITY]; round < ROUNDS; round++) {
    await catchUp(following);
    const { touched } = following;
    const size = touched.ids.size + touched.users.size;
    // Of a store that is written fast, it does not become less.
    if (size <= LITTLE || size >= before) break;
    before = size;
    // What is the same now, and does not change any more, need not be compared in the freeze.
    following.touched = { ids: new Set(), users: new Set() };
    const [a, b] = [source, target].map((store) => touchedSide(store, touched, users, signal)) as [Side, Side];
    const { differences } = await compare(a, b, { most: Number.POSITIVE_INFINITY });
    for (const { id } of differences) following.touched.ids.add(id);
  }
  return result;
}

/** Applies the feed until little is left: while a page is applied, others come. */
async function catchUp(following: Following): Promise<void> {
  for (let pages = 0; pages < MAX_PAGES; ) {
    const { more, changes } = await applyNext(following, 0);
    if (more) continue;
    if (changes.length <= LITTLE) return;
    pages++;
  }
}

/** Applies the rest of the feed of a frozen source. Throws if an open transaction holds the feed back for long. */
async function drain(following: Following): Promise<void> {
  const { source, signal } = following;
  const frozenAt = performance.now();
  for (;;) {
    // Asked first: once no transaction is older than the freeze, the feed has all changes.
    const milliseconds = performance.now() - frozenAt;
    const { feed_held_seconds } = await source.client.frozen({ signal });
    while ((await applyNext(following, 0)).more);
    if (1_000 * feed_held_seconds < milliseconds) return;
    if (milliseconds > HELD_MS) {
      const open = `open for ${feed_held_seconds.toFixed(0)} s`;
      throw new Error(
        `a transaction on the database server of ${source.name}, ${open}, holds back the feed; end it, and try again`,
      );
    }
    await setTimeout(LOOK_MS, undefined, { signal });
  }
}

async function verifyAll(
  following: Following,
  before: Awaited<ReturnType<typeof compare>>,
  { overlap: least }: StoreRequest,
): Promise<Pick<Report, 'reasons' | 'frozen' | 'users' | 'queries'>> {
  const { source, target, users, touched = { ids: new Set(), users: new Set() }, signal, rejected } = following;
  if (following.state.cursor === null) await reconcile(following);
  const [a, b] = [source, target].map((store) =>
    following.state.cursor === null ? sideOf(store, users) : touchedSide(store, touched, users, signal),
  ) as [Side, Side];
  const [frozen, counts, { overlap, results }] = await Promise.all([
    compare(a, b, { most: MAX_NAMED }),
    countsOf(source, target, users),
    compareQueries(a, b, before.sample),
  ]);
  const different = counts?.different ?? [];
  const reasons = [
    ...frozen.differences.map(
      (one) => `${printable(one.id)} of ${printable(one.user_id)}: ${printable(differenceText(one))}`,
    ),
    ...[...rejected].slice(0, MAX_NAMED).map(([id, reason]) => `rejected ${printable(id)}: ${printable(reason)}`),
    ...different
      .slice(0, MAX_NAMED)
      .map(([user, x, y]) => `user ${printable(user)} has ${memories(x)} in A and ${number(y)} in B`),
    ...(overlap !== null && overlap < least
      ? [`only ${(100 * overlap).toFixed(1)} % of the ten best of the queries are the same`]
      : []),
  ];
  return {
    ...{ reasons, frozen: summary(frozen), queries: { overlap, least, results } },
    users: counts && { count: counts.count, memories: counts.memories },
  };
}

const summary = ({ counts, hashes, different }: Comparison) => ({ counts, hashes, different });

/** Users and memories of both stores; null: one does not count them. */
async function countsOf(source: GatewayStore, target: GatewayStore, users: readonly string[]) {
  // Asked first: the source is frozen, and one list alone is of no use.
  if (![source, target].every(({ capabilities }) => capabilities.features.users)) return null;
  const [a, b] = (await Promise.all([source, target].map((store) => countsByUser(store, users)))) as [Counts, Counts];
  const all = new Set([...a.keys(), ...b.keys()]);
  const pairs = [...all].map((user) => [user, a.get(user) ?? 0, b.get(user) ?? 0] as const);
  const sum = (side: 1 | 2) => pairs.reduce((total, pair) => total + pair[side], 0);
  return {
    count: all.size,
    memories: [sum(1), sum(2)] as const,
    different: pairs.filter(([, x, y]) => x !== y),
  };
}

function outcomeText(
  { before_freeze, frozen, freeze, queries, users }: Report,
  file: string,
  [from, to]: readonly [string, string],
): string {
  const share =
    queries.overlap === null
      ? ''
      : `, ${(100 * queries.overlap).toFixed(1)} % of the results of ${queries.results.length} queries the same`;
  const counted = users
    ? `${memories(users.memories[1])} of ${number(users.count)} users`
    : memories(before_freeze.counts[1]);
  const again = frozen ? `, ${number(frozen.counts[0])} of them compared again in the freeze` : '';
  const lines = [
    `The stores are the same: ${counted}${again}${share}.`,
    ...(freeze
      ? [`Frozen for ${number(freeze.milliseconds)} ms so far. The report is in ${file}.`]
      : [`The report is in ${file}.`]),
    `Now start the gateways with ${to}.`,
    ...(freeze ? [`${from} stays frozen. Once no gateway serves it any more: omp-gateway unfreeze ${from}`] : []),
    `To keep it up to date: omp-gateway migrate ${to} ${from} --follow`,
  ];
  return `${lines.join('\n')}\n`;
}
