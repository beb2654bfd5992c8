import type { ExportedMemory } from '../../clients/typescript/src/index.ts';
import { type CopyOptions, createCopy } from './copy.ts';
import { deleteMemory, eraseUser, type GatewayStore, memoriesOf, pagesOf } from './store.ts';
import type { Difference, Side } from './verify.ts';

/** A change of the source, as in its feed. */
export interface SourceChange {
  readonly action: string;
  /** Null: it concerns all memories of the user. */
  readonly id: string | null;
  readonly user_id: string;
}

/** Memories, and users with all their memories. */
export interface Touched {
  readonly ids: Set<string>;
  readonly users: Set<string>;
}

export interface FollowOptions extends Omit<CopyOptions, 'onConflict' | 'rejected' | 'placeOf'> {
  /** None: every user. */
  readonly users: readonly string[];
  /** Why the target rejected memories, by their ids. Kept up to date. */
  readonly rejected: Map<string, string>;
}

/** Ids that are read and written together. */
const TOGETHER = 500;

/**
 * Makes memories of the target what they are in the source now: stored, replaced or deleted. It does not matter what was changed, nor how
 * often, so that anything may be repeated after an interruption. A memory that changes meanwhile is changed again later in the feed.
 */
export function createFollower(
  source: GatewayStore,
  target: GatewayStore,
  { users, rejected, ...options }: FollowOptions,
) {
  const { signal, concurrency } = options;
  const isWanted = ({ user_id }: Pick<ExportedMemory, 'user_id'>) => users.length === 0 || users.includes(user_id);
  const copy = createCopy(target, {
    ...options,
    onConflict: 'replace',
    rejected: ({ id }, message) => rejected.set(id, message),
  });

  /** `deleted`: ids that were deleted once. A new memory with such an id may be of another user, so the old one has to go first. */
  const bring = async (ids: Iterable<string>, deleted: ReadonlySet<string> = new Set()) => {
    const all = [...ids];
    for (let at = 0; at < all.length; at += TOGETHER) {
      const some = all.slice(at, at + TOGETHER);
      const present = (await memoriesOf(source, some, signal)).filter(isWanted);
      const there = new Set(present.map(({ id }) => id));
      const gone = some.filter((id) => !there.has(id) || deleted.has(id));
      for (const id of some) rejected.delete(id);
      const worker = async () => {
        for (let id = gone.pop(); id !== undefined; id = gone.pop()) await deleteMemory(target, id, signal);
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
      await copy.page(present);
    }
  };

  return {
    counts: copy.counts,
    bring,
    /** Stores pages of the first copy. */
    copy: copy.page,
    async apply(changes: readonly SourceChange[]): Promise<Touched> {
      const wanted = changes.filter(isWanted);
      const erased = new Set(wanted.flatMap(({ id, user_id }) => (id === null ? [user_id] : [])));
      for (const user of erased) {
        await eraseUser(target, user, signal);
        for await (const { memories } of pagesOf(source, { users: [user], tags: [], vectors: true })) {
          await copy.page(memories);
        }
      }
      const ids = new Set(wanted.flatMap(({ id }) => id ?? []));
      await bring(ids, new Set(wanted.flatMap(({ id, action }) => (id !== null && action === 'delete' ? [id] : []))));
      return { ids, users: erased };
    },
  };
}

export type Follower = ReturnType<typeof createFollower>;

/** All memories of these users; none: of every user. */
export const sideOf = (store: GatewayStore, users: readonly string[]): Side => ({
  name: store.name,
  store,
  async *memories() {
    for await (const { memories } of pagesOf(store, { users, tags: [], vectors: false })) yield* memories;
  },
});

/** Only what was touched, without what belongs to other users. */
export const touchedSide = (
  store: GatewayStore,
  touched: Touched,
  users: readonly string[],
  signal: AbortSignal,
): Side => ({
  name: store.name,
  store,
  async *memories() {
    const seen = new Set<string>();
    const all = touched.users.size === 0 ? [] : sideOf(store, [...touched.users]).memories();
    for await (const memory of all) {
      seen.add(memory.id);
      yield memory;
    }
    for (const memory of await memoriesOf(store, [...touched.ids], signal)) {
      if (!seen.has(memory.id) && (users.length === 0 || users.includes(memory.user_id))) yield memory;
    }
  },
});

/** The difference of a comparison in words, without its id. */
export const differenceText = ({ fields, missing_in, repeated_in }: Omit<Difference, 'id' | 'user_id'>): string => {
  if (missing_in !== undefined) return `missing in ${missing_in}`;
  return repeated_in === undefined ? `differs in ${fields.join(', ')}` : `more than once in ${repeated_in}`;
};
