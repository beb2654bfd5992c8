import { setTimeout } from 'node:timers/promises';
import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { createFollower } from '../move/follow.ts';
import { type GatewayStore, pagesOf } from '../move/store.ts';
import { cutOver } from './move-cutover.ts';
import {
  applyNext,
  behind,
  canFreeze,
  countsByUser,
  endOfFeed,
  type Following,
  type FollowState,
  hasFeed,
  placeOf,
  reconcile,
} from './move-following.ts';
import { type Run, requireImport, vectorsText } from './move-run.ts';
import { memories, number } from './progress.ts';
import type { StoreRequest } from './store-arguments.ts';

/** Seconds that one request waits for a change. */
const WAIT = 20;
/** Milliseconds between two comparisons with a source without a feed. */
const PAUSE_MS = 5_000;

/** `omp-gateway migrate --follow` and `--cutover`. Returns the exit status. */
export async function runFollow(names: readonly [string, string], request: StoreRequest, run: Run): Promise<number> {
  const { values, filters, concurrency, perMinute } = request;
  const { signal } = run;
  const { users } = filters;
  const saved = placeOf(names, users, request);
  const last = values.restart ? undefined : await saved.read();
  // Nobody watches a target that follows for weeks; a cutover tells at once that something is down.
  const patience = values.cutover ? undefined : signal;
  const [source, target] = [await run.open(names[0], 'from', patience), await run.open(names[1], 'to', patience)];
  await requireTarget(target);
  run.say(vectorsText(source.capabilities.embedding ?? null, target));
  run.say(planOf(source, values.cutover === true));
  const state = last ?? (await begin(source, target, { users, mirror: values.mirror === true, signal }));
  const rejected = new Map<string, string>();
  // Of an interrupted copy it is not known how much is done.
  const counts = last ? undefined : await countsByUser(source, users);
  const total = counts && [...counts.values()].reduce((sum, count) => sum + count, 0);
  const following: Following = {
    ...{ source, target, users, state, rejected, signal, touched: undefined, applied: 0 },
    follower: createFollower(source, target, {
      ...{ users, rejected, concurrency, perMinute, signal },
      stored: ({ stored, unchanged }) => state.copying && run.progress({ done: stored + unchanged, total, perMinute }),
    }),
    save: () => saved.write(state),
    progress: (page) =>
      run.progress({ done: following.applied, behind: page ? behind(page) : { seconds: 0, left: 0 } }),
  };
  run.onStop(
    () =>
      `${memories(following.follower.counts.stored)} stored, ${number(following.applied)} changes applied; the same command goes on there`,
  );
  if (!last) await following.save();
  await copyAll(following);
  if (values.cutover) return cutOver(names, following, request, run);
  if (state.froze)
    run.say(`${source.name} is frozen by an earlier --cutover; repeat that, or: omp-gateway unfreeze ${names[0]}`);
  run.say(`${target.name} follows ${source.name}, until this command is stopped.`);
  for (;;) {
    if (state.cursor !== null) await applyNext(following, WAIT);
    else {
      await reconcile(following);
      await setTimeout(PAUSE_MS, undefined, { signal });
    }
  }
}

async function requireTarget(target: GatewayStore): Promise<void> {
  const { name, client, capabilities } = target;
  requireImport(target);
  if (!capabilities.verbs.includes('delete')) throw new Error(`${name} cannot delete memories`);
  // What /capabilities says may be a second old.
  const { since } = canFreeze(target) ? await client.frozen() : { since: null };
  if (since !== null) throw new Error(`${name} takes no changes since ${since}; first: omp-gateway unfreeze ${name}`);
}

/** What is about to happen, before it happens. */
function planOf(source: GatewayStore, cutover: boolean): string {
  const { name } = source;
  const how = hasFeed(source)
    ? `Changes come from the feed of ${name}.`
    : `${name} has no feed of changes (features.changes is not true): all memories of both are compared again and again.`;
  if (!cutover || (hasFeed(source) && canFreeze(source))) return how;
  return canFreeze(source)
    ? `${how} It is frozen while they are compared twice.`
    : `${how} It cannot be frozen: stop everything that writes to it before you go on, or what is written meanwhile is missing.`;
}

async function begin(
  source: GatewayStore,
  target: GatewayStore,
  {
    users,
    mirror,
    signal,
  }: { readonly users: readonly string[]; readonly mirror: boolean; readonly signal: AbortSignal },
): Promise<FollowState> {
  let isEmpty = true;
  for await (const { memories } of pagesOf(target, { users, tags: [], vectors: false })) {
    isEmpty = memories.length === 0;
    if (!isEmpty) break;
  }
  if (!isEmpty && !mirror) {
    throw new Error(
      `${target.name} has memories already; --mirror makes it the same as ${source.name}, and deletes what only ${target.name} has`,
    );
  }
  // Before the first copy: what changes from now on is applied after it.
  const cursor = hasFeed(source) ? await endOfFeed(source, signal) : null;
  return { cursor, copying: { user: 0, began: Date.now() }, mirror: !isEmpty, froze: false };
}

/** Difference of the clocks of this machine and the source, in milliseconds. */
const MAX_SKEW_MS = 60_000;

/**
 * Whether a memory was added after the copy began: then the feed has it, or a comparison finds it. To copy it too, the copy of a store that
 * is written faster than memories are stored in the target would never end. A creation time in the future says nothing.
 */
export const isNew = ({ created_at }: Pick<ExportedMemory, 'created_at'>, began: number): boolean => {
  const created = Date.parse(created_at);
  return created > began + MAX_SKEW_MS && created < Date.now() + MAX_SKEW_MS;
};

async function copyAll(following: Following): Promise<void> {
  const { source, state, users, follower, signal } = following;
  if (!state.copying) return;
  const { began } = state.copying;
  for await (const { memories, next } of pagesOf(source, { users, tags: [], vectors: true }, state.copying)) {
    signal.throwIfAborted();
    await follower.copy(memories.filter((memory) => !isNew(memory, began)));
    if (!next) continue;
    state.copying = { ...next, began };
    await following.save();
  }
  if (state.mirror) await reconcile(following);
  state.copying = null;
  await following.save();
}
