import { useCallback, useEffect, useState } from 'preact/hooks';
import { ApiError, type LeftOut } from '../../clients/typescript/src/index.ts';

export interface Loaded<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  /** Asks again; what was there stays until the answer. */
  reload(): void;
}

/** Asks when `key` changes, and gives up the question before. Undefined: there is nothing to ask. */
export function useLoad<Data>(key: string | undefined, load: (signal: AbortSignal) => Promise<Data>): Loaded<Data> {
  const [count, setCount] = useState(0);
  const [state, setState] = useState<{ readonly key?: string; readonly data?: Data; readonly error?: unknown }>({});
  useEffect(() => {
    if (key === undefined) return;
    const abort = new AbortController();
    load(abort.signal).then(
      (data) => abort.signal.aborted || setState({ key, data }),
      (error) => abort.signal.aborted || setState({ key, error }),
    );
    return () => abort.abort();
  }, [key, count]);
  const reload = useCallback(() => setCount((n) => n + 1), []);
  return state.key === key ? { ...state, reload } : { reload };
}

/** Which stores the answer lacks, and why. */
export function Missing({ from }: { from: LeftOut | undefined }) {
  const { 'x-partial': silent = [], 'x-without': unable = [] } = from ?? {};
  const sentences = [
    ...(silent.length > 0 ? [`Incomplete: nothing from ${silent.join(', ')}, which does not answer.`] : []),
    ...(unable.length > 0 ? [`Nothing from ${unable.join(', ')}, which does not support this.`] : []),
  ];
  return sentences.length === 0 ? null : (
    <p class="missing" role="status">
      {sentences.join(' ')}
    </p>
  );
}

/** Of a page that waits for an answer. */
export const Reading = () => (
  <p class="empty" aria-busy="true">
    Reading…
  </p>
);

/** What went wrong, with the id that finds it in the gateway's log. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <p class="failure" role="alert">
      {error instanceof Error ? error.message : String(error)}
      {error instanceof ApiError && error.requestId && <small>Request {error.requestId}</small>}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </p>
  );
}
