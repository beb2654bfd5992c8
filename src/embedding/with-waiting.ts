import type { Call, Embedder } from '#contract';

/**
 * Says of every call, for as long as it waits for an embedding, that it is this service it waits for. A call may wait for
 * several at once.
 */
export function withWaiting(inner: Embedder, service: string): Embedder {
  const pending = new WeakMap<NonNullable<Call['waiting']>, number>();
  return {
    ...inner,
    async embed(texts, purpose, call) {
      const { waiting } = call;
      if (!waiting) return inner.embed(texts, purpose, call);
      pending.set(waiting, (pending.get(waiting) ?? 0) + 1);
      waiting.on = service;
      try {
        return await inner.embed(texts, purpose, call);
      } finally {
        const left = (pending.get(waiting) ?? 1) - 1;
        pending.set(waiting, left);
        if (left === 0) waiting.on = undefined;
      }
    },
  };
}
