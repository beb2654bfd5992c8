import { LRUCache } from 'lru-cache';
import type { Call } from '#contract';
import type { Visibility } from './parts.ts';
import type { Lsn } from './service.ts';
import { createTokens } from './tokens.ts';
import { waitUntil } from './wait.ts';

export interface VisibilityOptions {
  /** The index's own, so that every replica reads every replica's tokens and nobody else's. */
  readonly secret: Uint8Array;
  /** Longest wait for what a token names, in milliseconds. */
  readonly wait_ms: number;
  /** Asks how far queries of a namespace see. */
  readonly look: (namespace: string, call: Call) => Promise<Lsn>;
}

/** Forgetting one costs a look. */
const REMEMBERED_NAMESPACES = 10_000;

/**
 * See `Visibility`. What is known is remembered, so that the usual request looks at nothing. Numbers are told by queries
 * alone: how far `fetch` and `list` see is not known.
 */
export function createVisibility({ secret, wait_ms, look }: VisibilityOptions): Visibility {
  const tokens = createTokens(secret);
  const seen = new LRUCache<string, number>({ max: REMEMBERED_NAMESPACES });
  const shows = (namespace: string, lsn: number) => (seen.get(namespace) ?? -1) >= lsn;
  const saw = (namespace: string, lsn: Lsn) => {
    if (lsn !== undefined && !shows(namespace, lsn)) seen.set(namespace, lsn);
  };
  const namedBy = ({ consistency }: Call, namespace: string) => tokens.read(consistency?.token, namespace);
  return {
    shows,
    saw,
    names: (namespace, call) => namedBy(call, namespace) !== undefined,
    wrote(namespace, lsn, { consistency }) {
      if (lsn !== undefined) consistency?.answer(tokens.add(consistency.token, namespace, lsn));
    },
    async caughtUp(namespace, call) {
      const wanted = namedBy(call, namespace);
      if (wanted === undefined || shows(namespace, wanted)) return;
      const looked = async () => {
        saw(namespace, await look(namespace, call));
        return shows(namespace, wanted);
      };
      if (!(await waitUntil(looked, wait_ms, call))) call.consistency?.behind();
    },
  };
}
