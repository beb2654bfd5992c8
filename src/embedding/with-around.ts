import type { Embedder } from '#contract';
import type { Around } from '../core/telemetry.ts';

/** Puts `around` around every call. */
export function withAround(inner: Embedder, dependency: string, around: Around): Embedder {
  const operation = { kind: 'embedding', dependency, name: 'embed', reads: true } as const;
  return {
    model: inner.model,
    dimensions: inner.dimensions,
    embed: (texts, purpose, call) => around(operation, call, (own) => inner.embed(texts, purpose, own)),
    close: () => inner.close(),
  };
}
