import type {
  Call,
  Embedder,
  IdempotencyKey,
  Log,
  Memory,
  MemoryPatch,
  NewMemory,
  Provider,
  Ref,
  SearchHit,
  SearchQuery,
  Vector,
} from '#contract';
import { startIngestion } from './ingestion.ts';

/** A query whose vector is not computed yet. */
export type TextQuery = Omit<SearchQuery, 'vector'>;

/** A provider with its embedder: takes texts where a provider takes their vectors too. */
export interface Memories extends Omit<Provider, 'add' | 'idempotency' | 'update' | 'search' | 'ingestion'> {
  add?(input: NewMemory, call: Call): Promise<Memory>;
  /**
   * The same, at most once: what was added under this key before is returned as it was answered then, also when that
   * happens at the same moment elsewhere. Throws `invalid_request` when the key was used for another input.
   */
  addOnce?(input: NewMemory, key: IdempotencyKey, call: Call): Promise<Memory>;
  update?(ref: Ref, patch: MemoryPatch, call: Call): Promise<Memory | undefined>;
  search?(query: TextQuery, call: Call): Promise<SearchHit[]>;
}

/** Memories that can be added to. */
export type WritableMemories = Memories & Required<Pick<Memories, 'add'>>;

/**
 * Computes the vectors of a request, each once, before the backend is asked: an embedding takes no part in the backend's
 * retries, deadlines and circuit breaker. What needs no vector costs none: a repeated add, an update that keeps the
 * content, and contents that wait in the ingestion queue, which is worked off until the memories are closed. Without an
 * embedder all vectors are null.
 */
export function openMemories(provider: Provider, embedder: Embedder | undefined, log: Log): Memories {
  const { add, idempotency, update, search, ingestion: queue, close, ...rest } = provider;
  const deferred = embedder !== undefined && queue?.deferred === true;
  const ingestion = embedder && queue && startIngestion({ queue, embedder, log });
  const vectorOf = async (text: string, purpose: 'document' | 'query', call: Call): Promise<Vector> => {
    const [vector = null] = (await embedder?.embed([text], purpose, call)) ?? [];
    return vector;
  };
  const ofContent = async (text: string, call: Call): Promise<Vector> => {
    if (!embedder || deferred) return null;
    const vector = await vectorOf(text, 'document', call);
    // Nothing is written for a caller that gave up meanwhile.
    call.signal.throwIfAborted();
    return vector;
  };
  const written = <Result>(result: Result): Result => {
    if (deferred && result !== undefined) ingestion?.kick();
    return result;
  };

  return {
    ...rest,
    ...(add && { add: async (input, call) => written(await add(input, await ofContent(input.content, call), call)) }),
    ...(idempotency && {
      async addOnce(input, key, call) {
        let vector: Vector | undefined;
        for (;;) {
          const first = await idempotency.firstAnswer(input, key, call);
          if (first) return first;
          vector ??= await ofContent(input.content, call);
          const added = await idempotency.add(input, vector, key, call);
          if (added) return written(added);
          // Another request took the key meanwhile: what that was answered is the answer.
        }
      },
    }),
    ...(update && {
      async update(ref, patch, call) {
        const { content, ...others } = patch;
        if (content === undefined) return update(ref, patch, null, call);
        if (!embedder || deferred) return written(await update(ref, patch, null, call));
        const current = await provider.get(ref, call);
        if (!current) return undefined;
        // The content is written already; what the patch says of it has happened.
        if (current.content === content) return update(ref, others, null, call);
        return update(ref, patch, await ofContent(content, call), call);
      },
    }),
    ...(search && {
      search: async (query, call) => search({ ...query, vector: await vectorOf(query.text, 'query', call) }, call),
    }),
    async close() {
      await ingestion?.close();
      await close();
    },
  };
}
