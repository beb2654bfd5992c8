import { useEffect, useState } from 'preact/hooks';
import type { Change, Memory, Stats, User } from '../../clients/typescript/src/index.ts';
import { useLoad } from './load.tsx';
import { useSession } from './session.ts';

/** Users of which the page knows the number of memories. */
const USERS = 500;
/** Of so many users, the largest, the growth is asked; and of the last to change, what is new. */
export const ASKED = 12;
/** Newest memories of each of these. */
const NEWEST = 100;

/** What is remembered, and what is new. */
export interface Stock {
  readonly users: readonly User[];
  /** There are more users than these. */
  readonly more: boolean;
  readonly stats: readonly Stats[];
  /** Newest first. */
  readonly newest: readonly Memory[];
  /** Added since midnight; `isAll`: there are not more. */
  readonly today: { readonly memories: readonly Memory[]; readonly isAll: boolean };
}

/** Asks again when `version` changes. Undefined data: not known yet, or the backend cannot list users. */
export function useStock(version: number) {
  const { client, capabilities } = useSession();
  const { features, verbs } = capabilities;
  return useLoad(features.users ? `${version}` : undefined, async (signal): Promise<Stock> => {
    const page = await client.users.list({ limit: USERS }, { signal }).page();
    const users = page.items;
    const largest = users.toSorted((a, b) => b.count - a.count).slice(0, ASKED);
    const last = users.toSorted((a, b) => b.last_write.localeCompare(a.last_write)).slice(0, ASKED);
    const [stats, lists] = await Promise.all([
      Promise.all(features.stats ? largest.map(({ user_id }) => client.users.stats(user_id, { signal })) : []),
      Promise.all(
        verbs.includes('list')
          ? last.map(({ user_id }) => client.memories.list({ user_id, limit: NEWEST }, { signal }).page())
          : [],
      ),
    ]);
    const midnight = new Date().setHours(0, 0, 0, 0);
    const isNew = ({ created_at }: Memory) => Date.parse(created_at) >= midnight;
    const newest = lists
      .flatMap(({ items }) => items)
      .sort((a, b) => (b.updated_at ?? b.created_at).localeCompare(a.updated_at ?? a.created_at));
    const others = users.filter(({ last_write }) => Date.parse(last_write) >= midnight).length > ASKED;
    return {
      users,
      more: Boolean(page.next_cursor),
      stats,
      newest,
      today: {
        memories: newest.filter(isNew),
        isAll:
          !others && !page.next_cursor && !lists.some(({ items }) => items.length === NEWEST && items.every(isNew)),
      },
    };
  });
}

/** Changes that are kept, newest first. */
const KEPT = 20;

/** Changes from now on, as they happen. */
export function useFeed(): { readonly changes: readonly Change[]; readonly error?: unknown } {
  const { client, capabilities } = useSession();
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!capabilities.features.changes) return;
    const abort = new AbortController();
    const follow = async () => {
      for await (const change of client.follow({ after: 'now', include: 'memory' }, { signal: abort.signal }))
        setChanges((before) => [change, ...before].slice(0, KEPT));
    };
    follow().catch((cause) => abort.signal.aborted || setError(cause));
    return () => abort.abort();
  }, [client]);
  return { changes, error };
}

interface Growth {
  readonly labels: readonly [string, string];
  readonly memories: readonly number[];
  readonly users: readonly number[];
}

/** Memories that are there, and users, by the day or month in which they were added. Undefined: all are of one day. */
export function growthOf(stats: readonly Stats[]): Growth | undefined {
  const length = stats.some(({ created }) => created.per === 'month') ? 7 : 10;
  const added = new Map<string, { memories: number; users: number }>();
  for (const { created } of stats) {
    created.counts.forEach(({ from, count }, n) => {
      const period = from.slice(0, length);
      const { memories, users } = added.get(period) ?? { memories: 0, users: 0 };
      added.set(period, { memories: memories + count, users: users + (n === 0 ? 1 : 0) });
    });
  }
  const [first] = [...added.keys()].sort();
  const last = new Date().toISOString().slice(0, length);
  if (first === undefined || first === last) return undefined;
  const [memories, users]: [number[], number[]] = [[0], [0]];
  for (let day = new Date(first); ; day = after(day, length)) {
    const period = day.toISOString().slice(0, length);
    const { memories: more = 0, users: others = 0 } = added.get(period) ?? {};
    memories.push((memories.at(-1) ?? 0) + more);
    users.push((users.at(-1) ?? 0) + others);
    if (period >= last) return { labels: [first, last], memories, users };
  }
}

const after = (day: Date, length: number): Date =>
  length === 10
    ? new Date(day.getTime() + 86_400_000)
    : new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1));
