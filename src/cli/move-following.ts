import { z } from 'zod';
import type { ChangePage } from '../../clients/typescript/src/index.ts';
import { type Follower, sideOf, type Touched } from '../move/follow.ts';
import { type GatewayStore, PATIENCE } from '../move/store.ts';
import { compare } from '../move/verify.ts';
import { WalkPlace } from './move-export.ts';
import { PAGE, type SavedPlace, savedPlace } from './move-run.ts';
import type { StoreRequest } from './store-arguments.ts';

const State = z.object({
  /** Up to where the feed of the source is applied; null: it has none. */
  cursor: z.string().nullable(),
  /** Where the first copy goes on, and when it began, in milliseconds since 1970; null: it is done. */
  copying: WalkPlace.extend({ began: z.number() }).nullable(),
  /** Whether the target had memories at the beginning: those that the source does not have are deleted. */
  mirror: z.boolean(),
  /** Whether this command froze the source. */
  froze: z.boolean(),
});
export type FollowState = z.output<typeof State>;

/** A target that follows a source. */
export interface Following {
  readonly source: GatewayStore;
  readonly target: GatewayStore;
  readonly users: readonly string[];
  readonly follower: Follower;
  readonly state: FollowState;
  /** Why the target rejected memories, by their ids. Not saved, because they may be many: a comparison finds them again. */
  readonly rejected: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
  /** What was changed in the target since this was set. */
  touched: Touched | undefined;
  applied: number;
  save(): Promise<void>;
  progress(page?: ChangePage): void;
}

/** Changes of one request. */
const CHANGES = 500;

export const placeOf = (
  names: readonly [string, string],
  users: readonly string[],
  request: StoreRequest,
): SavedPlace<FollowState> =>
  savedPlace((request.values.progress as string | undefined) ?? 'omp-migrate.json', ['follow', ...names, users], State);

/** With several stores, the feed lacks what others than the gateway change in a mounted one. */
export const hasFeed = ({ capabilities }: GatewayStore): boolean =>
  capabilities.features.changes === true && !capabilities['x-stores']?.length;
export const canFreeze = ({ capabilities }: GatewayStore): boolean => capabilities.features.freeze === true;

/** How many memories a user has. */
export type Counts = ReadonlyMap<string, number>;

/** Those of these users, or of all; undefined: the store does not count them. */
export async function countsByUser(
  { client, capabilities }: GatewayStore,
  users: readonly string[],
): Promise<Counts | undefined> {
  if (!capabilities.features.users) return undefined;
  const counts = new Map<string, number>();
  for await (const { user_id, count } of client.users.list({ limit: 500 })) {
    if (users.length === 0 || users.includes(user_id)) counts.set(user_id, count);
  }
  return counts;
}

/** The cursor for what changes from now on. */
export const endOfFeed = async ({ client }: GatewayStore, signal: AbortSignal): Promise<string> =>
  (await client.changes({ after: 'now', limit: 1 }, { signal })).next_cursor;

/** Applies one page of the feed, after waiting for it. */
export async function applyNext(following: Following, wait: number): Promise<ChangePage> {
  const { source, state, follower, signal } = following;
  const after = state.cursor as string;
  // As patient as all requests to a store.
  const page = await source.client.changes({ after, limit: CHANGES, wait }, { signal, ...PATIENCE });
  const { ids, users } = await follower.apply(page.changes);
  for (const id of ids) following.touched?.ids.add(id);
  for (const user of users) following.touched?.users.add(user);
  following.applied += page.changes.length;
  state.cursor = page.next_cursor;
  await following.save();
  following.progress(page);
  return page;
}

/** How far a page of the feed is behind, and about how many changes come after it: as many a second as in the page. */
export function behind({ changes, more }: Pick<ChangePage, 'changes' | 'more'>): { seconds: number; left: number } {
  const [first, last] = [changes.at(0), changes.at(-1)].map((change) => Date.parse(change?.at ?? ''));
  if (!more || first === undefined || last === undefined || Number.isNaN(first + last)) return { seconds: 0, left: 0 };
  const seconds = Math.max(0, (Date.now() - last) / 1_000);
  return { seconds, left: Math.round((seconds * 1_000 * changes.length) / Math.max(1, last - first)) };
}

/** Compares all memories, and brings those that differ. Resolves to the comparison, with the memories of a sample. */
export async function reconcile(following: Following, sampled = 0): Promise<Awaited<ReturnType<typeof compare>>> {
  const { source, target, users, follower, signal } = following;
  let read = 0;
  const result = await compare(sideOf(source, users), sideOf(target, users), {
    ...{ sampled, most: Number.POSITIVE_INFINITY },
    progress() {
      if (++read % PAGE === 0) signal.throwIfAborted();
    },
  });
  const ids = new Set(result.differences.map(({ id }) => id));
  await follower.bring(ids);
  for (const id of ids) following.touched?.ids.add(id);
  following.applied += ids.size;
  following.progress();
  return result;
}
