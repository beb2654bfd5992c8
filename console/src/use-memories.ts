import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { groupResults, type LeftOut, type ListQuery, type Memory } from '../../clients/typescript/src/index.ts';
import { useSession } from './session.ts';

/** What the address filters by; a text is searched, everything else is listed. */
export interface Filters {
  readonly user: string;
  readonly scope?: string | undefined;
  readonly tag?: string | undefined;
  readonly origin?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly q?: string | undefined;
}

const PAGE = 200;
/** Most results of a search. */
export const MOST_FOUND = 100;

export const toListQuery = ({ user, scope, tag, origin, since, until }: Filters): ListQuery => ({
  user_id: user,
  scope: scope || undefined,
  tag: tag || undefined,
  origin: origin || undefined,
  since: since || undefined,
  // The filter includes the whole day.
  until: until ? `${until}T23:59:59.999Z` : undefined,
});

interface State {
  readonly key: string;
  readonly items: readonly Memory[];
  /** Undefined: there are no more. */
  readonly cursor: string | undefined;
  /** Of the last page. */
  readonly leftOut?: LeftOut;
  /** Of a search: ids of items that are far below the best. */
  readonly lessLikely?: ReadonlySet<string> | undefined;
  readonly error?: unknown;
}

/** The memories that the filters leave, page after page. */
export function useMemories(filters: Filters) {
  const { client, capabilities } = useSession();
  const key = JSON.stringify(filters);
  const [state, setState] = useState<State>();
  const [count, setCount] = useState(0);
  const abort = useRef<AbortController | undefined>(undefined);
  const loading = useRef(false);

  const load = useCallback(
    async (cursor: string | undefined, before: readonly Memory[]) => {
      if (cursor === undefined) abort.current?.abort();
      else if (loading.current) return;
      abort.current = new AbortController();
      const { signal } = abort.current;
      loading.current = true;
      try {
        const page = await (filters.q ? found(signal) : listed(cursor, signal));
        if (!signal.aborted)
          setState({
            key,
            items: [...before, ...page.items],
            cursor: page.next_cursor ?? undefined,
            leftOut: page,
            lessLikely: 'lessLikely' in page ? page.lessLikely : undefined,
          });
      } catch (error) {
        if (!signal.aborted) setState({ key, items: before, cursor, error });
      } finally {
        if (!signal.aborted) loading.current = false;
      }
    },
    [client, key],
  );
  const listed = (cursor: string | undefined, signal: AbortSignal) =>
    client.memories.list({ ...toListQuery(filters), limit: PAGE, cursor }, { signal }).page();
  const found = async (signal: AbortSignal) => {
    const { user, q = '', scope, origin } = filters;
    const { since, until } = toListQuery(filters);
    const { results, ...answer } = await client.memories.search(
      {
        ...{ q, user_id: user, scope: scope?.replace(/\*$/, '') || undefined },
        ...{ origin: origin || undefined, limit: MOST_FOUND },
        ...(capabilities.features.temporal_search && { since, until }),
      },
      { signal },
    );
    const left = results.filter(
      ({ memory: { tags, created_at } }) =>
        (!filters.tag || tags?.includes(filters.tag)) &&
        (!since || created_at >= since) &&
        (!until || created_at <= until),
    );
    const lessLikely = new Set(groupResults(left).lessLikely.map(({ memory }) => memory.id));
    return { ...answer, items: left.map(({ memory }) => memory), lessLikely, next_cursor: null };
  };

  useEffect(() => {
    void load(undefined, []);
    return () => abort.current?.abort();
  }, [load, count]);
  const current = state?.key === key ? state : undefined;
  const change = useCallback(
    (edit: (items: readonly Memory[]) => readonly Memory[]) =>
      setState((now) => now && { ...now, items: edit(now.items) }),
    [],
  );
  return {
    items: current?.items,
    /** Whether the first page has come. */
    loaded: current !== undefined,
    more: current?.cursor !== undefined,
    leftOut: current?.leftOut,
    lessLikely: current?.lessLikely,
    error: current?.error,
    loadMore: () => {
      if (current?.cursor !== undefined && current.error === undefined) void load(current.cursor, current.items);
    },
    retry() {
      if (current?.cursor === undefined) setCount((n) => n + 1);
      else void load(current.cursor, current.items);
    },
    change,
  };
}
